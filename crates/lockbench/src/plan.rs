// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run of threads consists of: its cells, and whether threads can do what the scenario says.

use std::sync::atomic::AtomicBool;

use unspin_scenario::{Distribution, Scenario, Vm, WorkUnit};

use crate::{
    baselines::Contender,
    error::Error,
    group::THREADS_MAX,
    summary::Cell,
    table::{GrantPages, RunStates},
};

/// Most neighbours.
const NEIGHBOURS_MAX: u32 = 1_024;

/// What is varied, each in the order given; what is empty is the scenario's own.
#[derive(Clone, Debug, Default)]
pub struct Axes {
    /// The locks to compare.
    pub locks: Vec<Contender>,
    /// Threads per group.
    pub threads: Vec<u32>,
    /// Work inside the lock.
    pub holds: Vec<Distribution>,
    /// Work outside, all of it.
    pub thinks: Vec<Distribution>,
    /// Threads beside the groups that only use CPU time; empty: none.
    pub neighbours: Vec<u32>,
}

/// How a scenario is run between threads: each VM becomes a group of threads that share its locks.
#[derive(Debug)]
pub struct ThreadsOptions<'a> {
    /// What runs. Its host scheduler, windows, ticks and logs do not apply to threads.
    pub scenario: &'a Scenario,
    /// What is varied.
    pub axes: Axes,
    /// Where the locks' run_states come from.
    pub run_states: RunStates<'a>,
    /// Threads ask for time-slice extension around critical sections, of ours and of baselines alike.
    pub slice_extension: bool,
    /// Threads tell the host's scheduler of their critical sections here.
    pub grants: Option<&'a dyn GrantPages>,
    /// A sample takes as many times the scenario's duration as there are threads for a CPU, so that each gets its share.
    pub stretch: bool,
    /// Ends the run with [`Error::Interrupted`] when it becomes true.
    pub interrupt: &'a AtomicBool,
}

/// What one cell runs. `None`: the scenario's own.
pub struct Plan {
    pub lock: Option<Contender>,
    pub threads: Option<u32>,
    pub hold: Option<Distribution>,
    pub think: Option<Distribution>,
    pub neighbours: u32,
    /// Number of the point, that is of all but the lock.
    pub point: usize,
}

/// Whether threads can do it, and not too many of them.
pub fn check(options: &ThreadsOptions<'_>) -> Result<(), Error> {
    let vms = &options.scenario.vms;
    if vms
        .iter()
        .any(|vm| vm.shootdown_every_iterations + vm.wakeup_every_iterations > 0)
    {
        return Err(Error::Unsupported(
            "threads send no IPIs: leave shootdown_every_iterations and wakeup_every_iterations at 0",
        ));
    }
    if vms.iter().any(|vm| vm.load_changes_every_ms > 0) {
        return Err(Error::Unsupported(
            "threads have one load: leave load_changes_every_ms at 0",
        ));
    }
    let groups: u32 = vms.iter().map(|vm| vm.count).sum();
    if groups == 0 {
        return Err(Error::Unsupported("the scenario has no VM"));
    }
    let most = options
        .axes
        .threads
        .iter()
        .copied()
        .chain(vms.iter().map(|vm| vm.vcpus))
        .max();
    let least = options.axes.threads.iter().copied().min().unwrap_or(1);
    if least == 0 || most.is_none_or(|most| most > THREADS_MAX) {
        return Err(Error::Threads(THREADS_MAX));
    }
    if options
        .axes
        .neighbours
        .iter()
        .any(|&count| count > NEIGHBOURS_MAX)
    {
        return Err(Error::Unsupported("at most 1,024 neighbours"));
    }
    if let RunStates::Page(page) = options.run_states {
        if groups > page.len() / crate::table::WAITERS_MAX {
            return Err(Error::Unsupported(
                "run_states from BPF are for 16 groups at most",
            ));
        }
    }
    if groups.saturating_mul(most.unwrap_or(1)) > 4_096 {
        return Err(Error::Unsupported("at most 4,096 threads in all"));
    }
    Ok(())
}

/// Whether some work is given in time.
pub fn needs_rate(options: &ThreadsOptions<'_>) -> bool {
    let works = |vm: &Vm| [vm.user_work.unit, vm.kernel_work.unit, vm.hold.unit];
    let axes = options.axes.holds.iter().chain(&options.axes.thinks);
    options
        .scenario
        .vms
        .iter()
        .flat_map(works)
        .chain(axes.map(|work| work.unit))
        .any(|unit| unit == WorkUnit::Nanoseconds)
}

/// The cells in the order asked for: for each lock, all points.
pub fn plans(options: &ThreadsOptions<'_>) -> Vec<Plan> {
    let axes = &options.axes;
    let neighbours: &[u32] = if axes.neighbours.is_empty() {
        &[0]
    } else {
        &axes.neighbours
    };
    let mut plans = Vec::new();
    for lock in or_own(&axes.locks) {
        let mut point = 0;
        for &neighbours in neighbours {
            for hold in or_own(&axes.holds) {
                for think in or_own(&axes.thinks) {
                    for threads in or_own(&axes.threads) {
                        plans.push(Plan {
                            lock,
                            threads,
                            hold: hold.clone(),
                            think: think.clone(),
                            neighbours,
                            point,
                        });
                        point += 1;
                    }
                }
            }
        }
    }
    plans
}

/// What is to be varied; one `None`, the scenario's own, when nothing is.
fn or_own<T: Clone>(varied: &[T]) -> Vec<Option<T>> {
    if varied.is_empty() {
        return vec![None];
    }
    varied.iter().cloned().map(Some).collect()
}

/// A cell's labels: locks and threads by group, as far as they differ.
pub fn describe(scenario: &Scenario, plan: &Plan) -> Cell {
    let mut locks: Vec<&str> = Vec::new();
    let mut threads = 0;
    for vm in &scenario.vms {
        let name = plan.lock.unwrap_or(vm.lock.into()).name();
        if !locks.contains(&name) {
            locks.push(name);
        }
        threads += vm.count * plan.threads.unwrap_or(vm.vcpus);
    }
    let first = &scenario.vms[0];
    Cell {
        lock: locks.join("+"),
        is_baseline: plan.lock.is_some_and(Contender::is_baseline),
        point: plan.point,
        hold: plan.hold.as_ref().unwrap_or(&first.hold).clone(),
        think: plan.think.as_ref().unwrap_or(&first.user_work).clone(),
        neighbours: plan.neighbours,
        threads,
        groups: scenario.vms.iter().map(|vm| vm.count).sum(),
        samples: Vec::new(),
    }
}
