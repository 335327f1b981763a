// SPDX-License-Identifier: MIT OR Apache-2.0
//! VMs that run until they are stopped: whoever holds them reads their statistics as often as it likes.
use std::time::{Duration, Instant};

use unspin_events::{ClockSample, TscClock};
use unspin_scenario::Scenario;

use crate::{
    Error,
    host::{
        Host, allow_open_files,
        clock::{self, WorkRate},
        pause_loop::PauseLoop,
    },
    machine::parameters::{Surroundings, needs_tsc_rate, needs_work_rate},
    options::{Phase, RunOptions},
    run::{fleet::Fleet, snapshot::Snapshot},
};

/// How often the main thread looks for first instructions.
const START_POLL: Duration = Duration::from_millis(1);

/// All VMs of a scenario, in their guests. Dropping it takes every vCPU out at once, whatever it was doing.
pub struct Running {
    pub(crate) fleet: Fleet,
    pub(crate) host: Host,
    pub(crate) begin: ClockSample,
    pub(crate) work_rate: Option<WorkRate>,
    stop_limit: Duration,
}

impl Running {
    /// Creates the scenario's VMs and returns when every vCPU has executed its first instruction. Its length does not end
    /// them, but a number of iterations does. Of the phases only `Created` and `Started` are told.
    ///
    /// # Errors
    /// See [`Error`]; by the time it is returned no VM and no vCPU thread is left.
    pub fn start(scenario: &Scenario, options: &RunOptions) -> Result<Running, Error> {
        Running::start_told(scenario, options, &|phase| options.told(phase))
    }

    /// The same, its phases told to `phase`.
    pub(crate) fn start_told(
        scenario: &Scenario,
        options: &RunOptions,
        phase: &dyn Fn(Phase),
    ) -> Result<Running, Error> {
        let begin = clock::sample();
        let mut host = Host::open(scenario)?;
        host.pv_pages = options.pv_pages.clone();
        let work_rate = needs_work_rate(scenario).then(WorkRate::measure);
        allow_open_files(scenario);
        let mut fleet = Fleet::new(options.interrupt.clone())?;
        let surroundings = Surroundings {
            apic_timer_hz: host.apic_timer_hz,
            work_rate,
            tsc_hz: needs_tsc_rate(scenario).then(clock::tsc_hz),
            fault: options.fault,
        };
        fleet.create(&host, scenario, surroundings)?;
        phase(Phase::Created);
        fleet.release();
        wait_until_started(&mut fleet, options.start_limit)?;
        phase(Phase::Started);
        Ok(Running {
            fleet,
            host,
            begin,
            work_rate,
            stop_limit: options.stop_limit,
        })
    }

    /// Lets them run for so long, or until every vCPU has ended, and says which: true for ended.
    ///
    /// # Errors
    /// `Guest` as soon as a vCPU has failed; `Interrupted`.
    pub fn wait(&mut self, time: Duration) -> Result<bool, Error> {
        self.fleet.wait_until(Instant::now() + time)
    }

    /// Their statistics now; the VMs go on meanwhile.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.fleet)
    }

    /// The guests' clock against the host's, from the start until now.
    ///
    /// # Errors
    /// `Clock`, when no time has passed.
    pub fn clock(&self) -> Result<TscClock, Error> {
        TscClock::new(self.begin, clock::sample()).map_err(Error::Clock)
    }

    /// The pause-loop parameters in force; `None` where neither kvm_amd nor kvm_intel is loaded.
    pub fn pause_loop(&self) -> Option<PauseLoop> {
        self.host.pause_loop
    }

    /// Names and vCPU threads of the VMs, in order of numbers: what the kernel's trace calls them.
    pub fn vms(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = u32>)> {
        self.fleet.vms.iter().map(|vm| {
            let threads = vm.vcpus.iter().map(|vcpu| vcpu.thread_id);
            (vm.machine.name.as_str(), threads)
        })
    }

    /// Lets every guest finish its iteration and be done, and joins all threads.
    ///
    /// # Errors
    /// `NotStopped` for a guest that does not; `Guest`, `Interrupted`.
    pub fn stop(mut self) -> Result<(), Error> {
        self.finish_spins()?;
        self.fleet.take_down();
        Ok(())
    }

    /// As [`Running::stop`], but the threads are still to be joined.
    pub(crate) fn finish_spins(&mut self) -> Result<(), Error> {
        for vm in &self.fleet.vms {
            vm.machine.memory.request_stop();
        }
        match self.wait(self.stop_limit)? {
            true => Ok(()),
            false => Err(self.fleet.not_stopped(self.stop_limit)),
        }
    }
}

fn wait_until_started(fleet: &mut Fleet, limit: Duration) -> Result<(), Error> {
    let end = Instant::now() + limit;
    let memory = |fleet: &Fleet, vm: usize| fleet.vms[vm].machine.memory.clone();
    let places: Vec<_> = fleet.places().collect();
    for place in places {
        let memory = memory(fleet, place.vm);
        while memory.first_instruction_tsc(place.vcpu) == 0 {
            if Instant::now() > end {
                return Err(Error::NotStarted {
                    vm: fleet.name(place),
                    vcpu: place.vcpu,
                    waited_ms: limit.as_millis() as u64,
                });
            }
            fleet.wait_until(Instant::now() + START_POLL)?;
        }
    }
    Ok(())
}
