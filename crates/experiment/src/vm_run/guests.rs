// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the micro guests say of themselves beyond their waits: in which critical sections they were preempted (eCS's
//! classes, ruling 23), how long woken tasks took to run (BWW), and what their locks asked of the host.
//!
//! Counters of the whole run; each table only when some VM has something to say in it.

use std::cell::Cell;

use unspin_abi::{UNSPIN_GUEST_ECS_CLASSES, unspin_guest_statistics};
use unspin_report::row;
use unspin_vmm::VmReport;

use super::Run;

/// In the order of `enum unspin_ecs_class` (policy/classify/ecs_class.h), which is that of precedence.
const CLASSES: [(&str, &str); UNSPIN_GUEST_ECS_CLASSES as usize] = [
    ("icp", "interrupt (ICP)"),
    ("nb_lhp", "spinning lock (NB-LHP)"),
    ("rrp", "RCU reader (RRP)"),
    ("b_lhp", "blocking lock (B-LHP)"),
    ("rp", "reader (RP)"),
    ("none", "none"),
];

row! {
    "preemption", ["vm run"];
    /// Preemptions of a VM's vCPUs in one class of critical section, as its guest knows (eCS, ruling 23).
    pub struct PreemptionRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// The class: `icp`, `nb_lhp`, `rrp`, `b_lhp`, `rp` or `none`.
        class: &'static str,
        /// The same in words.
        section: &'static str = ("critical section", Text),
        /// Preemptions, each once: in the first class that held, in this order.
        preemptions: u64 = ("preemptions", Count),
        /// Share in all preemptions; percent.
        of_all_percent: f64 = ("of all %", Percent),
        /// Preemptions in every class that held.
        applied: u64 = ("applied", Count),
        /// Time off the pCPU, counted as `preemptions`; ns.
        stolen_ns: u64 = ("off its CPU", Nanoseconds),
    }
}

row! {
    "wakeup", ["vm run"];
    /// How long a VM's woken tasks took to run (BWW, ruling 23).
    pub struct WakeupRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// Woken tasks.
        wakeups: u64 = ("woken tasks", Count),
        /// Mean time from the wake-up until the task runs; ns.
        mean_ns: Option<f64> = ("mean", Nanoseconds),
        /// Of it, until the vCPU is runnable: exit and IPI; ns. Null, as the next two, where KVM tells no steal time.
        exit_ns: Option<f64> = ("exit and IPI", Nanoseconds),
        /// Of it, in the host's run queue; ns.
        host_ns: Option<f64> = ("host queue", Nanoseconds),
        /// Of it, in the guest; ns.
        guest_ns: Option<f64> = ("guest", Nanoseconds),
    }
}

row! {
    "call", ["vm run"];
    /// What a VM's locks and tasks did, of the whole run.
    pub struct CallRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// HLTs of waits for locks.
        lock_halts: u64 = ("halts in locks", Count),
        /// vCPUs woken, by hypercall or IPI.
        kicks: u64 = ("kicks", Count),
        /// Of these, hypercalls that the host refused.
        kicks_refused: u64 = ("refused", Count),
        /// Hypercalls that ask for help.
        helps: u64 = ("asked for help", Count),
        /// Hypercalls that yield to a named vCPU.
        named_yields: u64 = ("named", Count),
        /// Switches from one task of a vCPU to another.
        task_switches: u64 = ("task switches", Count),
        /// Tasks that left the run queue.
        task_sleeps: u64 = ("sleeps", Count),
        /// Interrupt handlers of the workload that worked.
        interrupts_worked: u64 = ("interrupts", Count),
        /// Operations that took the lock for reading.
        reads: u64 = ("reads", Count),
        /// pv pages registered.
        pv_page_registrations: u64,
        /// Of these, those that the host answered.
        pv_page_acknowledgements: u64,
    }
}

impl Run {
    /// For each VM in which anybody was preempted and whose KVM tells steal time, a row for each class.
    pub fn preemption_rows(&self) -> Vec<PreemptionRow> {
        self.report.vms.iter().flat_map(preemption_rows).collect()
    }

    /// A row for each VM whose tasks were woken.
    pub fn wakeup_rows(&self) -> Vec<WakeupRow> {
        let tsc_hz = self.report.clock.tsc_hz();
        let vms = self.report.vms.iter();
        vms.filter_map(|vm| wakeup_row(vm, tsc_hz)).collect()
    }

    /// A row for each VM that did anything of this.
    pub fn call_rows(&self) -> Vec<CallRow> {
        self.report.vms.iter().filter_map(call_row).collect()
    }
}

fn sum(vm: &VmReport, of: impl Fn(&unspin_guest_statistics) -> u64) -> u64 {
    let each = vm.vcpus.iter().map(|vcpu| of(&vcpu.statistics));
    each.fold(0, u64::saturating_add)
}

/// A row for each class; none where KVM tells no steal time, or nothing was stolen.
fn preemption_rows(vm: &VmReport) -> Vec<PreemptionRow> {
    let told = vm.vcpus.iter().all(|vcpu| vcpu.statistics.steal_time != 0);
    let all = sum(vm, |s| {
        s.preempted.iter().fold(0, |a, b| a.saturating_add(*b))
    });
    if !told || all == 0 {
        return Vec::new();
    }
    let row = |(class, (word, section)): (usize, &(&'static str, &'static str))| {
        let preemptions = sum(vm, |s| s.preempted[class]);
        PreemptionRow {
            vm: vm.name.clone(),
            class: word,
            section,
            preemptions,
            of_all_percent: preemptions as f64 * 100.0 / all as f64,
            applied: sum(vm, |s| s.preempted_in[class]),
            stolen_ns: sum(vm, |s| s.preempted_ns[class]),
        }
    };
    CLASSES.iter().enumerate().map(row).collect()
}

/// Means of all woken tasks; none where nobody was woken.
fn wakeup_row(vm: &VmReport, tsc_hz: u64) -> Option<WakeupRow> {
    let wakeups = sum(vm, |s| s.task_wakes);
    if wakeups == 0 {
        return None;
    }
    let mut told = vm.vcpus.iter().map(|vcpu| &vcpu.statistics);
    let told = told.all(|statistics| statistics.steal_time != 0 && statistics.tsc_khz != 0);
    let parts = [
        sum(vm, |s| s.bww_exit_cycles),
        sum(vm, |s| s.bww_host_cycles),
        sum(vm, |s| s.bww_guest_cycles),
    ];
    let (mean_ns, [exit_ns, host_ns, guest_ns]) = wakeup_means(parts, wakeups, tsc_hz, told);
    Some(WakeupRow {
        vm: vm.name.clone(),
        wakeups,
        mean_ns,
        exit_ns,
        host_ns,
        guest_ns,
    })
}

/// The mean time of `wakeups` (above 0) and its parts, nanoseconds, which add up to it. The parts are known only where the
/// guest was `told` its steal time and the TSC's rate; without a rate here (0) nothing is.
fn wakeup_means(
    parts_cycles: [u64; 3],
    wakeups: u64,
    tsc_hz: u64,
    told: bool,
) -> (Option<f64>, [Option<f64>; 3]) {
    if tsc_hz == 0 {
        return (None, [None; 3]);
    }
    let parts_ns = parts_cycles.map(|cycles| cycles as f64 * 1e9 / tsc_hz as f64 / wakeups as f64);
    let mean_ns = parts_ns.iter().sum();
    (Some(mean_ns), parts_ns.map(|ns| told.then_some(ns)))
}

/// None of a VM that did nothing of this.
fn call_row(vm: &VmReport) -> Option<CallRow> {
    let did = Cell::new(false);
    let sum = |of: fn(&unspin_guest_statistics) -> u64| {
        let sum = sum(vm, of);
        did.set(did.get() || sum != 0);
        sum
    };
    let row = CallRow {
        vm: vm.name.clone(),
        lock_halts: sum(|s| s.lock_halts),
        kicks: sum(|s| s.kicks),
        kicks_refused: sum(|s| s.kicks_refused),
        helps: sum(|s| s.helps),
        named_yields: sum(|s| s.named_yields),
        task_switches: sum(|s| s.task_switches),
        task_sleeps: sum(|s| s.task_sleeps),
        interrupts_worked: sum(|s| s.interrupts_worked),
        reads: sum(|s| s.reads),
        pv_page_registrations: sum(|s| s.pv_page_registrations),
        pv_page_acknowledgements: sum(|s| s.pv_page_acknowledgements),
    };
    did.get().then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_wake_up_add_up_or_are_not_known() {
        let parts = [3_000, 50_000, 7_000];
        let (mean, shown) = wakeup_means(parts, 10, 2_000_000_000, true);
        assert_eq!(shown, [Some(150.0), Some(2_500.0), Some(350.0)]);
        assert_eq!(mean, Some(3_000.0));
        let untold = wakeup_means(parts, 10, 2_000_000_000, false);
        assert_eq!(untold, (Some(3_000.0), [None; 3]));
        assert_eq!(wakeup_means(parts, 10, 0, true), (None, [None; 3]));
    }
}
