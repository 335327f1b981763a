// SPDX-License-Identifier: MIT OR Apache-2.0
//! The KVM of this host: real VMs that keep running while our scheduler comes and goes.

mod details;
mod figures;
mod pv_pages;
mod sentence;
mod why;
mod windows;

use std::time::{Duration, Instant};

use anyhow::anyhow;
use unspin_agent::UsefulTimeMeter;
use unspin_policy::auto::UsefulTime;
use unspin_scenario::Scenario;
use unspin_vmm::{RunOptions, Running, Shares, VmGrowth};

use crate::{
    Error, Row, Session,
    plan::{Column, Plan, Programs, Step, Vms, steps},
    progress::Work,
    row,
    sample::{Sample as _, Samples},
    watch::{Events, Ready, Watch},
    world::{
        Taken, World, ideal_of, run,
        steering::{self, Steering},
    },
};
use windows::Windows;

pub use details::{SampleRow, VmRow};
pub use figures::Figures;
pub use pv_pages::{of_running as pv_pages_of_running, say_missed as say_missed_pv_pages};
pub use sentence::sentence;
pub use why::Why;
pub use windows::{WindowRow, WindowSample};

/// One VM in one window.
#[derive(Clone, Copy, Debug)]
pub struct VmSample {
    /// Acquisitions per second of all its vCPUs.
    pub operations_per_s: f64,
    /// CPU time of its vCPUs' threads.
    pub cpu_ns: u64,
}

/// One window of one column.
#[derive(Clone, Debug)]
pub struct Sample {
    /// By VM number.
    pub vms: Vec<VmSample>,
    /// Share of the vCPUs' CPU time that the guests spent spinning, percent; not finite where KVM keeps no steal time.
    pub spin_share_percent: f64,
    /// Of the loaded VMs, where windows are compared.
    pub windows: Option<WindowSample>,
    /// Time in the guests that was not spun, where that is measured; ns per second.
    pub useful_ns_per_s: Option<f64>,
}

impl crate::Sample for Sample {
    fn per_second(&self) -> f64 {
        self.vms.iter().map(|vm| vm.operations_per_s).sum()
    }
}

/// What is known of the host and of stock beside the samples.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// CPUs that the scenario's VMs may use.
    pub cpus: u32,
    /// KVM's pause-loop window, in PAUSEs (AMD) or cycles (Intel).
    pub ple_window: Option<u64>,
    /// For whom stock's vCPUs spun; none when nobody looked.
    pub why: Option<Why>,
}

/// All rows of compared scenarios.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// One for each policy.
    pub rows: Vec<Row<Figures>>,
    /// One for each VM and column.
    pub vms: Vec<VmRow>,
    /// One for each sample.
    pub samples: Vec<SampleRow>,
    /// One for each column, where windows were compared.
    pub windows: Vec<WindowRow>,
}

impl Compared {
    /// Adds another scenario's.
    pub fn extend(&mut self, other: Compared) {
        self.rows.extend(other.rows);
        self.vms.extend(other.vms);
        self.samples.extend(other.samples);
        self.windows.extend(other.windows);
    }
}

/// Runs the scenario and what it is compared with on this host. `replay`: the command that repeats it. Needs root where a policy
/// steers or BPF programs watch.
///
/// # Errors
/// When a VM or the scheduler cannot be had, the kernel takes its own scheduler back, stock or ideal did nothing, or the session
/// is interrupted.
pub fn compare(
    scenario: &Scenario,
    plan: &Plan,
    replay: &str,
    session: &Session,
) -> Result<Compared, Error> {
    let online = || std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let cpus = scenario.host.cpus.unwrap_or_else(online);
    let mut world = Kvm {
        scenario,
        plan,
        session,
        ideal: ideal_of(scenario, cpus),
        running: None,
        steering: Steering::of(plan, session)?.with_only_vms(plan.only_vms),
        ready: None,
        windows: Windows::new(plan.sets_windows()),
        meter: None,
        facts: Facts {
            cpus,
            ..Facts::default()
        },
    };
    session.progress.begin("comparing", Work::Unknown);
    let samples = run(&mut world, &steps(plan.pairs as usize, plan.columns()));
    session.progress.end();
    let samples = samples?;
    rows(scenario, plan, &samples, &world.facts, replay)
}

/// What the samples say.
fn rows(
    scenario: &Scenario,
    plan: &Plan,
    samples: &Samples<Sample>,
    facts: &Facts,
    replay: &str,
) -> Result<Compared, Error> {
    let common = Figures::of(scenario, plan, samples, facts, replay);
    let vcpus: u32 = scenario.vms.iter().map(|vm| vm.count * vm.vcpus).sum();
    let rows = row::rows(
        &row::shape(scenario),
        f64::from(vcpus) / f64::from(facts.cpus),
        samples,
        &plan.judged(),
        |column| match column {
            None => common.clone(),
            Some(column) => common.clone().steered(&samples.of(column)),
        },
    );
    let rows = rows.ok_or_else(|| {
        anyhow!(
            "no pair of runs of {} can be compared: one of them did no operation in its window; \
             a longer window helps",
            scenario.name
        )
    })?;
    Ok(Compared {
        rows,
        vms: details::vm_rows(scenario, plan, samples),
        samples: details::sample_rows(scenario, plan, samples),
        windows: windows::rows(scenario, plan, samples),
    })
}

struct Kvm<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    session: &'a Session<'a>,
    ideal: Scenario,
    // Dropped in this order on an error: the guests' threads first, under whatever scheduler there is.
    running: Option<Running>,
    steering: Steering<'a>,
    ready: Option<Ready>,
    windows: Windows,
    meter: Option<UsefulTimeMeter>,
    facts: Facts,
}

impl World for Kvm<'_> {
    type Sample = Sample;

    fn change(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::Load(Programs::Scheduler) => self.steering.load(),
            Step::Load(Programs::Observer) => {
                // Before the VMs run: beside them the kernel's verifier has a share of a CPU, which took half a minute in the
                // testbed.
                self.ready = Watch::ready(self.plan.observe, Events::Wanted)?;
                Ok(())
            }
            Step::Start(vms, seed) => self.start(vms, seed),
            Step::Steer(to) => {
                self.steering.to(to)?;
                self.windows.set(self.steering.window(to))?;
                let learning = self.steering.learning();
                self.wait(learning)
            }
            Step::Discard => self.wait(self.plan.discard),
            Step::Explain => self.explain(),
            Step::Stop => Ok(self.running.take().map_or(Ok(()), Running::stop)?),
            Step::Measure(..) => unreachable!("measure() is for that"),
        }
    }

    fn measure(&mut self, column: Column, pair: usize) -> Result<Taken<Sample>, Error> {
        let say = self.what(column, pair);
        self.session.progress.say(&say);
        let windows = self.windows.begin()?;
        let useful = self.useful_time()?;
        let begin = self.running().snapshot();
        self.wait(self.plan.sample)?;
        let running = self.running();
        let grown = running.snapshot().since(&begin);
        let mut sample = sample(&grown, running.clock()?.tsc_hz());
        if let Some((before, since)) = useful {
            let after = self.useful_time()?.map_or(before, |(after, _)| after);
            let useful_ns = after.since(&before).useful_ns() as f64;
            sample.useful_ns_per_s = Some(useful_ns / since.elapsed().as_secs_f64());
        }
        if let Some(begin) = windows {
            sample.windows = self.windows.end(&begin)?;
        }
        self.steering.still_attached()?;
        let chosen = steering::in_words(&self.steering.chosen_by_auto());
        let line = format!("{say}: {:.0} operations/s{chosen}", sample.per_second());
        self.session.progress.line(&line);
        Ok(Taken::Sample(sample))
    }
}

impl Kvm<'_> {
    fn start(&mut self, vms: Vms, seed: u64) -> Result<(), Error> {
        let mut scenario = match vms {
            Vms::Ideal => self.ideal.clone(),
            Vms::Loaded => self.scenario.clone(),
        };
        scenario.seed = scenario.seed.wrapping_add(seed);
        let options = RunOptions {
            interrupt: self.session.interrupt.clone(),
            pv_pages: pv_pages::of_running(&scenario)?,
            ..RunOptions::default()
        };
        // The programs of the VMs before know nothing of these.
        self.windows.stop();
        let running = Running::start(&scenario, &options)?;
        let window = running.pause_loop().map(|control| control.window);
        self.facts.ple_window = window.map(Into::into);
        self.running = Some(running);
        self.steering.vms_started();
        if vms == Vms::Loaded {
            self.windows.start(window)?;
        }
        // A new set of VMs is a change like any other, once it is warm.
        self.wait(Duration::from_nanos(scenario.warm_up_ns) + self.plan.discard)
    }

    /// The running VMs; the steps see to it that there are some.
    fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("VMs were started before")
    }

    fn wait(&mut self, time: Duration) -> Result<(), Error> {
        if self.running().wait(time)? {
            return Err(anyhow!("all guests ended before they were told to").into());
        }
        Ok(())
    }

    /// The useful time of this world's VMs so far, which are threads of this process, and when that was; `None`: it is not measured.
    fn useful_time(&mut self) -> Result<Option<(UsefulTime, Instant)>, Error> {
        if !self.plan.useful_time {
            return Ok(None);
        }
        let meter = match &mut self.meter {
            Some(meter) => meter,
            None => self.meter.insert(UsefulTimeMeter::attach()?),
        };
        let own = meter.read()?.remove(&std::process::id());
        Ok(Some((own.unwrap_or_default(), Instant::now())))
    }

    fn what(&self, column: Column, pair: usize) -> String {
        let (name, pairs) = (&self.scenario.name, self.plan.pairs);
        let column = self.plan.column_name(column);
        format!("{name}: pair {} of {pairs}, {column}", pair + 1)
    }

    fn explain(&mut self) -> Result<(), Error> {
        self.session.progress.say("looking where stock's time goes");
        let running = self.running.take().expect("VMs were started before");
        self.facts.why = why::look(running, self.ready.take())?;
        Ok(())
    }
}

fn sample(grown: &[VmGrowth], tsc_hz: u64) -> Sample {
    let shares = Shares::sum(grown.iter().flat_map(|vm| {
        vm.vcpus
            .iter()
            .map(|vcpu| Shares::of(&vcpu.window, vcpu.cpu_time_ns, vm.window_ns, tsc_hz))
    }));
    let vm = |vm: &VmGrowth| {
        let operations: u64 = vm.vcpus.iter().map(|vcpu| vcpu.window.operations).sum();
        VmSample {
            operations_per_s: operations as f64 * 1e9 / vm.window_ns.max(1) as f64,
            cpu_ns: vm.vcpus.iter().map(|vcpu| vcpu.cpu_time_ns).sum(),
        }
    };
    Sample {
        vms: grown.iter().map(vm).collect(),
        spin_share_percent: shares.spin_percent().unwrap_or(f64::NAN),
        windows: None,
        useful_ns_per_s: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
