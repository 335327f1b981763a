// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run of threads consists of: its cells, and whether threads can do what the scenario says.

use unspin_abi::LockKind;
use unspin_scenario::{Scenario, Vm, WorkUnit};

use crate::{error::Error, group::THREADS_MAX, summary::Cell, threads::ThreadsOptions};

/// What one cell runs.
pub struct Plan {
    /// `None`: the scenario's own locks.
    pub lock: Option<LockKind>,
    /// `None`: the scenario's own numbers.
    pub threads: Option<u32>,
}

/// Whether threads can do it, and not too many of them.
pub fn check(options: &ThreadsOptions<'_>) -> Result<(), Error> {
    let vms = &options.scenario.vms;
    if vms
        .iter()
        .any(|vm| vm.shootdown_every_turns + vm.wakeup_every_turns > 0)
    {
        return Err(Error::Unsupported(
            "threads send no IPIs: leave shootdown_every_turns and wakeup_every_turns at 0",
        ));
    }
    if options.repeat == 0 {
        return Err(Error::Unsupported("repeat at least once"));
    }
    let groups: u32 = vms.iter().map(|vm| vm.count).sum();
    if groups == 0 {
        return Err(Error::Unsupported("the scenario has no VM"));
    }
    let most = options
        .threads
        .iter()
        .copied()
        .chain(vms.iter().map(|vm| vm.vcpus))
        .max();
    let least = options.threads.iter().copied().min().unwrap_or(1);
    if least == 0 || most.is_none_or(|most| most > THREADS_MAX) {
        return Err(Error::Threads(THREADS_MAX));
    }
    if groups.saturating_mul(most.unwrap_or(1)) > 4_096 {
        return Err(Error::Unsupported("at most 4,096 threads in all"));
    }
    Ok(())
}

/// Whether some work is given in time.
pub fn needs_rate(scenario: &Scenario) -> bool {
    let works = |vm: &Vm| [vm.user_work.unit, vm.kernel_work.unit, vm.hold.unit];
    scenario
        .vms
        .iter()
        .flat_map(works)
        .any(|unit| unit == WorkUnit::Nanoseconds)
}

/// The cells in the order asked for: for each lock, each number of threads.
pub fn plans(options: &ThreadsOptions<'_>) -> Vec<Plan> {
    let mut plans = Vec::new();
    for lock in or_own(&options.locks) {
        for threads in or_own(&options.threads) {
            plans.push(Plan { lock, threads });
        }
    }
    plans
}

/// What is to be varied; one `None`, the scenario's own, when nothing is.
fn or_own<T: Copy>(varied: &[T]) -> Vec<Option<T>> {
    if varied.is_empty() {
        return vec![None];
    }
    varied.iter().copied().map(Some).collect()
}

/// A cell's labels: locks and threads by group, as far as they differ.
pub fn describe(scenario: &Scenario, plan: &Plan) -> Cell {
    let mut locks: Vec<&str> = Vec::new();
    let mut threads = 0;
    for vm in &scenario.vms {
        let name = plan.lock.unwrap_or(vm.lock).name();
        if !locks.contains(&name) {
            locks.push(name);
        }
        threads += vm.count * plan.threads.unwrap_or(vm.vcpus);
    }
    Cell {
        lock: locks.join("+"),
        threads,
        groups: scenario.vms.iter().map(|vm| vm.count).sum(),
        samples: Vec::new(),
    }
}
