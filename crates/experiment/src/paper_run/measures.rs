// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run of the lab is measured by for the papers: sums over the vCPUs of each group of VMs, after the warm-up.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use unspin_analysis::{Sight, VmExits, WindowUnit, analyse};
use unspin_events::Event;
use unspin_lab::{
    Counts, Lab, Outcome, VcpuOutcome,
    host_events::HostEvents,
    ids::{Cpu, Task},
    perfetto::TraceIds,
    run as run_world,
    trace_event::{Observer, TraceEvent},
};
use unspin_papers::lab_rows::OUTCOMES;
use unspin_policy::{Outcome as Became, RunRule};
use unspin_scenario::Scenario;

use super::stalls::Stalls;
use crate::Error;

/// Measures of one group, by name; none where a run has no such value.
pub type Measures = BTreeMap<String, Option<f64>>;

type Forward = Box<dyn FnMut(Event)>;

/// Watches a run.
struct Watch {
    /// When the warm-up ends.
    counts_from_ns: u64,
    stalls: Stalls,
    /// Windows in force at pause-loop exits, summed up, by task.
    windows: Vec<u64>,
    /// For the analysis of exits, where it is wanted.
    host: Option<HostEvents<Forward>>,
}

impl Observer for Watch {
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent) {
        let counts = now_ns >= self.counts_from_ns;
        self.stalls.see(now_ns, task, what, counts);
        if let (TraceEvent::PauseExit { window }, Some(task), true) = (what, task, counts) {
            if task.index() >= self.windows.len() {
                self.windows.resize(task.index() + 1, 0);
            }
            self.windows[task.index()] += u64::from(window);
        }
        if let Some(host) = &mut self.host {
            host.on_event(now_ns, cpu, task, what);
        }
    }
}

/// Runs the scenario and measures each `[[vm]]` of it, in order; `outcomes`: with what became of each pause-loop exit.
///
/// # Errors
/// A scenario that the lab cannot run, or a model that makes no progress.
pub fn measure(scenario: &Scenario, outcomes: bool) -> Result<Vec<Measures>, Error> {
    let refused = |error| Error::Usage(format!("{}: {error}", scenario.name));
    let lab = Lab::new(scenario).map_err(refused)?;
    let events: Rc<RefCell<Vec<Event>>> = Rc::default();
    let watch = Watch {
        counts_from_ns: scenario.warm_up_ns,
        stalls: Stalls::new(u64::from(lab.costs().wait_spin_ps + lab.costs().pause_ps)),
        windows: Vec::new(),
        host: outcomes.then(|| {
            let into = Rc::clone(&events);
            let forward: Forward = Box::new(move |event| into.borrow_mut().push(event));
            HostEvents::new(&TraceIds::of(scenario, lab.host()), forward)
        }),
    };
    let mut world = lab.world(scenario, watch).map_err(refused)?;
    let outcome = run_world(&mut world, scenario, |_| {}).map_err(|error| {
        let (name, seed) = (&scenario.name, scenario.seed);
        Error::Failed(anyhow::anyhow!("{name}, seed {seed}: {error}"))
    })?;
    let watch = world.into_observer();
    let exits = outcomes.then(|| {
        let sight = Sight {
            ipi_blind: false,
            window_unit: WindowUnit::Pauses,
            linux_vectors: true,
        };
        analyse(&events.borrow(), sight)
    });
    let mut first_vm = 0;
    let groups = scenario.vms.iter().map(|vm| {
        let vms = first_vm..first_vm + vm.count;
        first_vm = vms.end;
        let group = Group {
            outcome: &outcome,
            vcpus: outcome
                .vcpus
                .iter()
                .filter(|vcpu| vms.contains(&vcpu.vm))
                .collect(),
            watch: &watch,
            cpus: lab.host().topology.cpus(),
            window_unit_ps: lab.host().window_unit_ps,
        };
        let mut measures = group.measures();
        if let Some(exits) = &exits {
            let of = vms.filter_map(|vm| exits.vms.get(&vm));
            measures.extend(became(&of.collect::<Vec<_>>()));
        }
        measures
    });
    Ok(groups.collect())
}

/// The VMs of one `[[vm]]`.
struct Group<'a> {
    outcome: &'a Outcome,
    vcpus: Vec<&'a VcpuOutcome>,
    watch: &'a Watch,
    cpus: u32,
    window_unit_ps: u64,
}

impl Group<'_> {
    fn sum(&self, what: impl Fn(&Counts) -> u64) -> f64 {
        let sum: u64 = self.vcpus.iter().map(|vcpu| vcpu.grown(&what)).sum();
        sum as f64
    }

    fn measures(&self) -> Measures {
        let mut all = self.times();
        all.extend(self.exits_and_preemptions());
        all.extend(self.waits());
        let named = all.into_iter();
        named
            .map(|(name, value)| (name.to_owned(), value.filter(|value| value.is_finite())))
            .collect()
    }

    fn times(&self) -> Vec<(&'static str, Option<f64>)> {
        let window_ns = self.outcome.window_ns as f64;
        let running_ns = self.sum(|counts| counts.times.running_ns);
        let spinning_ns = self.sum(|counts| counts.statistics.spin_ns);
        let operations = self.sum(|counts| counts.statistics.operations);
        let wall_ns = window_ns * self.vcpus.len() as f64;
        let waiting_ns = self.sum(|counts| counts.statistics.lock_wait_ns);
        let halted_ns = self.sum(|counts| counts.times.halted_ns);
        let windows: u64 = self.vcpus.iter().map(|vcpu| self.windows(vcpu.task)).sum();
        let spun_ns = windows as f64 * self.window_unit_ps as f64 / 1e3;
        let handling_ns = self.sum(|counts| counts.statistics.spin_host_ns);
        vec![
            ("operations_per_second", share(operations * 1e9, window_ns)),
            ("elapsed_ns", Some(self.outcome.end_ns as f64)),
            ("guest_time_ns", Some(running_ns)),
            ("spinning_ns", Some(spinning_ns)),
            ("spinning_percent", percent(spinning_ns, running_ns)),
            ("waiting_percent", percent(waiting_ns, wall_ns)),
            ("idle_percent", percent(halted_ns, wall_ns)),
            (
                "cpu_share_percent",
                percent(running_ns, window_ns * f64::from(self.cpus)),
            ),
            ("cpu_time_per_vcpu_percent", percent(running_ns, wall_ns)),
            (
                "inefficiency_percent",
                percent(spun_ns + handling_ns, running_ns),
            ),
        ]
    }

    fn exits_and_preemptions(&self) -> Vec<(&'static str, Option<f64>)> {
        let seconds = self.outcome.window_ns as f64 / 1e9;
        let operations = self.sum(|counts| counts.statistics.operations);
        let exits = self.sum(|counts| counts.statistics.pause_exits);
        let holding = self.sum(|counts| counts.statistics.preemptions_holding);
        let waiting = self.sum(|counts| counts.statistics.preemptions_waiting);
        let halts = self.sum(|counts| counts.statistics.halts);
        vec![
            ("pause_exits_per_second", share(exits, seconds)),
            ("pause_exits_per_operation", share(exits, operations)),
            ("preemptions_holding_per_second", share(holding, seconds)),
            (
                "preemptions_critical_per_second",
                share(holding + waiting, seconds),
            ),
            ("preemptions_holding", Some(holding)),
            ("halts_per_second", share(halts, seconds)),
        ]
    }

    fn waits(&self) -> Vec<(&'static str, Option<f64>)> {
        let waits = self
            .vcpus
            .iter()
            .map(|vcpu| self.watch.stalls.of(vcpu.task));
        let (mut acquisitions, mut stalls, mut next) = (0, 0, 0);
        for of in waits {
            acquisitions += of.acquisitions;
            stalls += of.stalls;
            next += of.next_waiter_stalls;
        }
        let [acquisitions, stalls, next] = [acquisitions, stalls, next].map(|count| count as f64);
        let wait_ns = self.sum(|counts| counts.statistics.lock_wait_ns);
        vec![
            ("acquisitions", Some(acquisitions)),
            ("stalls", Some(stalls)),
            ("next_waiter_stalls", Some(next)),
            ("next_waiter_percent", percent(next, stalls)),
            ("stalls_per_million", share(stalls * 1e6, acquisitions)),
            ("mean_wait_ns", share(wait_ns, acquisitions)),
        ]
    }

    fn windows(&self, task: Task) -> u64 {
        self.watch.windows.get(task.index()).copied().unwrap_or(0)
    }
}

/// What became of the pause-loop exits of some VMs: shares as in VEE'21's Figure 6 (ruling 28), and of exits in runs longer
/// than twice the vCPUs (ruling 29).
fn became(vms: &[&VmExits]) -> Measures {
    let of = |outcome: Became| -> u64 { vms.iter().map(|vm| vm.outcomes[outcome as usize]).sum() };
    let papers = [
        Became::Mismatch,
        Became::LostOpportunity,
        Became::Overboost,
        Became::Success,
    ];
    let all: u64 = papers.iter().map(|outcome| of(*outcome)).sum();
    let shares = papers.map(|outcome| percent(of(outcome) as f64, all as f64));
    let runs = vms
        .iter()
        .map(|vm| vm.runs(RunRule::InterruptsIgnored).shares);
    let (mut long, mut exits) = (0, 0);
    for shares in runs {
        long += shares.above_twice_vcpus;
        exits += shares.exits;
    }
    let [mismatch, lost, overboost, success] = shares;
    let values = [
        mismatch,
        lost,
        overboost,
        success,
        percent(long as f64, exits as f64),
    ];
    OUTCOMES
        .iter()
        .map(|name| (*name).to_owned())
        .zip(values)
        .collect()
}

/// `part / whole`; none of nothing.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn percent(part: f64, whole: f64) -> Option<f64> {
    share(100.0 * part, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Measures> {
        let scenario = Scenario::parse(text, "s.toml").expect("a scenario");
        measure(&scenario, true).expect("it runs")
    }

    #[test]
    fn a_vm_alone_has_all_its_time_and_no_stalls() {
        let all = of(
            "duration = \"20ms\"\nwarm_up = \"5ms\"\n[host]\ncpus = 1\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\n\
                      user_work = \"4us\"\nhold = \"1us\"\n",
        );
        let [one] = &all[..] else { panic!() };
        let value = |name: &str| one[name].expect(name);
        assert!(value("cpu_share_percent") > 99.0);
        assert_eq!(value("stalls"), 0.0);
        // The accesses that find the lock free.
        assert!(value("spinning_percent") < 0.5);
        assert!((150_000.0..200_001.0).contains(&value("operations_per_second")));
        // Nothing was stalled, no exit was made: no shares of these.
        assert_eq!(one["next_waiter_percent"], None);
        assert_eq!(one["success_percent"], None);
    }

    #[test]
    fn groups_are_measured_apart_and_overcommitted_tickets_stall_for_waiters() {
        let all = of(
            "duration = \"60ms\"\nwarm_up = \"5ms\"\nseed = 2\n[host]\ncpus = 2\nple_window = 3000\n[[vm]]\nvcpus = 4\nlock = \"ticket\"\n\
                      user_work = { exponential = \"3us\" }\nhold = { exponential = \"1us\" }\n[[vm]]\nvcpus = 2\nlock = \"ticket\"\nlocks = \"private\"\nhold = \"1us\"\n",
        );
        let [load, other] = &all[..] else { panic!() };
        assert!(load["stalls"] > Some(0.0), "{load:?}");
        assert!(load["next_waiter_percent"] > Some(50.0), "{load:?}");
        assert!(load["spinning_percent"] > Some(10.0), "{load:?}");
        assert!(load["inefficiency_percent"] > Some(0.0), "{load:?}");
        assert_eq!(other["stalls"], Some(0.0));
        let shares = OUTCOMES[..4].iter().map(|name| load[*name].expect(name));
        assert!((shares.sum::<f64>() - 100.0).abs() < 1e-6);
    }
}
