// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run brings back.
use unspin_abi as abi;
use unspin_events::TscClock;

use crate::host::{clock::WorkRate, pause_loop::PauseLoop};

/// A run that ended as its scenario says.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// In order of their numbers.
    pub vms: Vec<VmReport>,
    /// The window that rates are taken from, on average over the VMs.
    pub window_ns: u64,
    /// TSC and CLOCK_MONOTONIC at the beginning and the end of the run.
    pub clock: TscClock,
    /// How fast this machine does the work loop; measured only when a distribution is in nanoseconds.
    pub work_rate: Option<WorkRate>,
    /// The pause-loop parameters in force; `None` where neither kvm_amd nor kvm_intel is loaded.
    pub pause_loop: Option<PauseLoop>,
    /// From the call of `run()` until the last VM's first instruction.
    pub all_started_ns: u64,
}

/// One VM.
#[derive(Clone, Debug)]
pub struct VmReport {
    /// Counted through all groups of the scenario.
    pub number: u32,
    /// `vm0`, as in thread names.
    pub name: String,
    /// Index of its group in `Scenario::vms`.
    pub group: usize,
    /// From the call of `run()` to the VM's first instruction, by the guest's own TSC.
    pub start_ns: u64,
    /// Between the two snapshots of this VM's statistics.
    pub window_ns: u64,
    /// Guest memory in use at the end.
    pub resident_bytes: u64,
    /// By vCPU number.
    pub vcpus: Vec<VcpuReport>,
}

/// One vCPU.
#[derive(Clone, Debug)]
pub struct VcpuReport {
    /// In its VM.
    pub number: u32,
    /// Of the thread that ran it: what the kernel's trace calls it.
    pub thread_id: u32,
    /// What KVM added to the host's TSC for the guest at the end of the run. It is set to 0 and stays so unless this KVM
    /// refuses that (before Linux 5.16) or the host's kernel calls its TSC unstable: then KVM moves it whenever the
    /// vCPU changes its CPU (kvm_arch_vcpu_load, arch/x86/kvm/x86.c), and the guest's times are good to no better than
    /// these offsets. `tsc=reliable` on an emulated host's command line avoids it.
    pub tsc_offset: i64,
    /// The same before the first instruction.
    pub tsc_offset_at_start: i64,
    /// As the guest left them.
    pub statistics: abi::unspin_guest_statistics,
    /// Their growth in the window.
    pub window: abi::unspin_guest_statistics,
    /// CPU time of the thread in the window, guest and KVM together.
    pub cpu_time_ns: u64,
    /// Returns of KVM_RUN in the whole run.
    pub user_exits: u64,
    /// The guest's log, in its order, with times as the guest's TSC read.
    pub waits: Vec<abi::unspin_guest_wait>,
}

/// What statistics grew by: every counter and histogram bucket `end` minus `begin`, never below 0 (a guest may write
/// anything). What is no counter (`state`, the two TSC values, `tsc_khz`, `longest_wait_cycles`) is that of `end`.
pub fn growth(
    begin: &abi::unspin_guest_statistics,
    end: &abi::unspin_guest_statistics,
) -> abi::unspin_guest_statistics {
    macro_rules! counters {
        ($($field:ident)*) => {
            abi::unspin_guest_statistics {
                $($field: end.$field.saturating_sub(begin.$field),)*
                preempted: array_growth(&begin.preempted, &end.preempted),
                preempted_in: array_growth(&begin.preempted_in, &end.preempted_in),
                preempted_ns: array_growth(&begin.preempted_ns, &end.preempted_ns),
                lock_wait: histogram_growth(&begin.lock_wait, &end.lock_wait),
                hold: histogram_growth(&begin.hold, &end.hold),
                shootdown_wait: histogram_growth(&begin.shootdown_wait, &end.shootdown_wait),
                bww: histogram_growth(&begin.bww, &end.bww),
                ..*end
            }
        };
    }
    counters!(
        operations pauses spin_count lock_waits lock_wait_cycles lock_wait_stolen_ns stalls stalls_unheld hold_cycles
        shootdowns shootdown_wait_cycles shootdown_wait_stolen_ns shootdowns_answered wakeups wakeups_received halts ticks
        ticks_in_user log_kept log_dropped steal_ns lock_halts lock_parked_cycles lock_parked_stolen_ns kicks kicks_refused helps named_yields
        task_switches task_sleeps task_wakes pv_page_registrations pv_page_acknowledgements interrupts_worked reads bww_exit_cycles bww_host_cycles
        bww_guest_cycles
    )
}

fn array_growth<const N: usize>(begin: &[u64; N], end: &[u64; N]) -> [u64; N] {
    std::array::from_fn(|index| end[index].saturating_sub(begin[index]))
}

fn histogram_growth(
    begin: &abi::unspin_histogram,
    end: &abi::unspin_histogram,
) -> abi::unspin_histogram {
    let mut grown = *end;
    for (grown, begin) in grown.count.iter_mut().zip(begin.count) {
        *grown = grown.saturating_sub(begin);
    }
    for (grown, begin) in grown.sum_cycles.iter_mut().zip(begin.sum_cycles) {
        *grown = grown.saturating_sub(begin);
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    const WORDS: usize = size_of::<abi::unspin_guest_statistics>() / 8;

    fn from_words(words: [u64; WORDS]) -> abi::unspin_guest_statistics {
        // SAFETY: same size, and every bit pattern is a valid struct of integers.
        unsafe { std::mem::transmute(words) }
    }

    fn to_words(statistics: abi::unspin_guest_statistics) -> [u64; WORDS] {
        // SAFETY: same size, and the struct has no padding (abi/guest/memory.h: naturally aligned words).
        unsafe { std::mem::transmute(statistics) }
    }

    #[test]
    fn every_counter_is_a_difference_and_nothing_is_forgotten() {
        let begin = from_words([1_000; WORDS]);
        let end = from_words(std::array::from_fn(|word| 5_000 + word as u64));
        let grown = to_words(growth(&begin, &end));
        // Words that are no counters; a field added to abi/guest/memory.h fails here until growth() knows it.
        let as_they_are = [
            offset_of!(abi::unspin_guest_statistics, first_instruction_tsc) / 8,
            offset_of!(abi::unspin_guest_statistics, done_tsc) / 8,
            offset_of!(abi::unspin_guest_statistics, state) / 8,
            offset_of!(abi::unspin_guest_statistics, longest_wait_cycles) / 8,
            offset_of!(abi::unspin_guest_statistics, tsc_khz) / 8,
        ];
        for (word, grown) in grown.into_iter().enumerate() {
            let end = 5_000 + word as u64;
            let expected = match as_they_are.contains(&word) {
                true => end,
                false => end - 1_000,
            };
            assert_eq!(grown, expected, "word {word}");
        }
    }

    #[test]
    fn a_guest_that_counts_backwards_yields_zero() {
        let begin = from_words([u64::MAX; WORDS]);
        let end = from_words([0; WORDS]);
        assert!(to_words(growth(&begin, &end)).iter().all(|word| *word == 0));
    }
}
