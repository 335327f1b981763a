// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes the steps of a comparison on this host: real VMs that keep running while our scheduler comes and goes.

use std::{collections::BTreeMap, time::Duration};

use anyhow::anyhow;
use unspin_agent::PolicyChoice;
use unspin_scenario::Scenario;
use unspin_vmm::{RunOptions, Running, Shares, VmGrowth};

use crate::{
    commands::{
        compare::{
            details::column_name,
            order::{self as compare_order, Column, Programs, Steered, Step, Vms, steps},
            steering::Steering,
            why::{self as compare_why, Why},
            windows::{WindowSample, Windows},
        },
        vm::{args::Observe, observe::Ready, pv_pages},
    },
    terminal::{failure::Failure, interrupt, progress::Activity},
};

/// How a scenario is compared.
#[derive(Clone, Debug)]
pub struct How {
    /// Pairs of samples of each column.
    pub pairs: u32,
    /// Length of each sample.
    pub sample: Duration,
    /// What is left out after each change of scheduler or policy.
    pub discard: Duration,
    /// Whether stock's spinning is explained afterwards.
    pub observe: Observe,
    /// One column each; without any there are only ideal and stock.
    pub policies: Vec<PolicyChoice>,
}

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
}

impl How {
    /// Whether windows are set by any of the policies.
    pub fn sets_windows(&self) -> bool {
        self.policies.iter().any(|policy| policy.window().is_some())
    }

    /// Whether our scheduler is wanted.
    pub fn steers(&self) -> bool {
        self.policies.iter().any(PolicyChoice::steers)
    }

    fn order(&self) -> compare_order::Policies {
        compare_order::Policies {
            count: self.policies.len(),
            steer: self.steers(),
        }
    }
}

impl Sample {
    /// Acquisitions per second of all VMs together.
    pub fn operations_per_s(&self) -> f64 {
        self.vms.iter().map(|vm| vm.operations_per_s).sum()
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// By column and pair.
    pub samples: BTreeMap<(Column, usize), Sample>,
    /// CPUs that the scenario's VMs may use.
    pub cpus: u32,
    /// KVM's pause-loop window, in PAUSEs (AMD) or cycles (Intel).
    pub ple_window: Option<u64>,
    /// For whom stock's vCPUs spun; none when nobody looked.
    pub why: Option<Why>,
}

/// The same work where nobody waits for a CPU: one VM of the first group, as many vCPUs as CPUs.
pub fn ideal_of(scenario: &Scenario, cpus: u32) -> Scenario {
    let mut ideal = scenario.clone();
    ideal.vms.truncate(1);
    for vm in &mut ideal.vms {
        vm.count = 1;
        vm.vcpus = cpus;
    }
    ideal
}

/// Runs the scenario and what it is compared with on this host; `tells`: each sample is a line on standard error.
///
/// # Errors
/// When a VM or the scheduler cannot be had, the kernel takes its own scheduler back, or Ctrl-C.
pub fn measure(scenario: &Scenario, how: &How, tells: bool) -> Result<Measured, Failure> {
    let online = || std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let cpus = scenario.host.cpus.unwrap_or_else(online);
    let mut world = World {
        scenario,
        how,
        ideal: ideal_of(scenario, cpus),
        running: None,
        steering: Steering::of(&how.policies)?,
        ready: None,
        windows: Windows::new(how.sets_windows()),
        activity: Activity::start("comparing"),
        tells,
        measured: Measured {
            cpus,
            ..Measured::default()
        },
    };
    for step in steps(how.pairs as usize, how.order()) {
        world.take(step)?;
    }
    Ok(world.measured)
}

struct World<'a> {
    scenario: &'a Scenario,
    how: &'a How,
    ideal: Scenario,
    // Dropped in this order on an error: the guests' threads first, under whatever scheduler there is.
    running: Option<Running>,
    steering: Steering,
    ready: Option<Ready>,
    windows: Windows,
    activity: Activity,
    tells: bool,
    measured: Measured,
}

impl World<'_> {
    fn take(&mut self, step: Step) -> Result<(), Failure> {
        match step {
            Step::Load(Programs::Scheduler) => self.steering.load(),
            Step::Load(Programs::Observer) => {
                self.ready = compare_why::ready(self.how.observe)?;
                Ok(())
            }
            Step::Start(vms, seed) => self.start(vms, seed),
            Step::Steer(to) => self.steer(to),
            Step::Discard => self.wait(self.how.discard),
            Step::Measure(column, pair) => self.sample(column, pair),
            Step::Explain => self.explain(),
            Step::Stop => Ok(self.running.take().map_or(Ok(()), Running::stop)?),
        }
    }

    fn start(&mut self, vms: Vms, seed: u64) -> Result<(), Failure> {
        let mut scenario = match vms {
            Vms::Ideal => self.ideal.clone(),
            Vms::Loaded => self.scenario.clone(),
        };
        scenario.seed = scenario.seed.wrapping_add(seed);
        let options = RunOptions {
            interrupt: interrupt::flag()?,
            pv_pages: pv_pages::of_running(&scenario)?,
            ..RunOptions::default()
        };
        // The programs of the VMs before know nothing of these.
        self.windows.stop();
        let running = Running::start(&scenario, &options)?;
        let window = running.pause_loop().map(|control| control.window);
        self.measured.ple_window = window.map(Into::into);
        self.running = Some(running);
        if vms == Vms::Loaded {
            self.windows.start(window)?;
        }
        // A new set of VMs is a change like any other, once it is warm.
        self.wait(Duration::from_nanos(scenario.warm_up_ns) + self.how.discard)
    }

    /// The running VMs; the steps see to it that there are some.
    fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("VMs were started before")
    }

    fn wait(&mut self, time: Duration) -> Result<(), Failure> {
        if self.running().wait(time)? {
            return Err(anyhow!("all guests ended before they were told to").into());
        }
        Ok(())
    }

    fn steer(&mut self, to: Steered) -> Result<(), Failure> {
        self.steering.to(to)?;
        self.windows.set(self.steering.window(to))
    }

    fn sample(&mut self, column: Column, pair: usize) -> Result<(), Failure> {
        let say = self.what(column, pair);
        self.activity.say(&say);
        let window = self.how.sample;
        let windows = self.windows.begin()?;
        let begin = self.running().snapshot();
        self.wait(window)?;
        let running = self.running();
        let grown = running.snapshot().since(&begin);
        let mut sample = sample(&grown, running.clock()?.tsc_hz());
        if let Some(begin) = windows {
            sample.windows = self.windows.end(&begin)?;
        }
        self.steering.still_attached()?;
        if self.tells {
            let operations_per_s = sample.operations_per_s();
            self.activity
                .done(&format!("{say}: {operations_per_s:.0} operations/s"));
        }
        self.measured.samples.insert((column, pair), sample);
        Ok(())
    }

    fn what(&self, column: Column, pair: usize) -> String {
        let (name, pairs) = (&self.scenario.name, self.how.pairs);
        let column = column_name(self.how, column);
        format!("{name}: pair {} of {pairs}, {column}", pair + 1)
    }

    fn explain(&mut self) -> Result<(), Failure> {
        self.activity.say("looking where stock's time goes");
        let running = self.running.take().expect("VMs were started before");
        self.measured.why = compare_why::look(running, self.ready.take())?;
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_is_one_vm_that_fits() {
        let text =
            "iterations = 1\n[[vm]]\ncount = 2\nvcpus = 4\nlock = \"ticket\"\nhold = \"1us\"\n";
        let scenario = Scenario::parse(text, "s.toml").expect("a scenario");
        let ideal = ideal_of(&scenario, 2);
        assert_eq!((ideal.vms[0].count, ideal.vms[0].vcpus), (1, 2));
        assert_eq!(ideal.vms[0].hold, scenario.vms[0].hold);
    }
}
