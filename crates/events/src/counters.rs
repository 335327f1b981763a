// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct unspin_vcpu_counters` of `abi/bpf/events.h`, with the arithmetic that readers need.

use serde::{Deserialize, Serialize};
use unspin_abi as abi;

/// Buckets of [`VcpuCounters::exit_to_entry_count`].
pub const LATENCY_BUCKETS: usize = abi::UNSPIN_LATENCY_BUCKETS as usize;

/// Counters of one vCPU thread since it was first seen or since the last reset. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpuCounters {
    /// Number of the VM, in order of appearance.
    pub vm: u32,
    /// KVM's number of the vCPU.
    pub vcpu: u32,
    /// Id of its thread.
    pub thread: u32,
    /// Thread group of its VMM.
    pub process: u32,
    /// All exits from the guest.
    pub exits: u64,
    /// Pause-loop exits.
    pub ple_exits: u64,
    /// Of them, with the guest in user mode.
    pub ple_exits_user: u64,
    /// Of them, with the guest's mode unknown.
    pub ple_exits_unknown_mode: u64,
    /// Calls of `kvm_vcpu_on_spin()`.
    pub on_spin: u64,
    /// Of them, without any call of `yield_to()`: no candidate. Known when the guest is entered again.
    pub on_spin_no_yield: u64,
    /// `yield_to()` above 0.
    pub yield_to_boosted: u64,
    /// `yield_to()` equal to 0.
    pub yield_to_refused: u64,
    /// `yield_to()` below 0.
    pub yield_to_failed: u64,
    /// Times the thread got a pCPU.
    pub switches_in: u64,
    /// Times it left its pCPU, preempted or yielding.
    pub switches_out_runnable: u64,
    /// Times it left its pCPU to sleep.
    pub switches_out_asleep: u64,
    /// On a pCPU.
    pub running_ns: u64,
    /// Waiting for a pCPU.
    pub runnable_ns: u64,
    /// Neither.
    pub asleep_ns: u64,
    /// Length of the observation, measured apart: the three above must add up to it.
    pub wall_ns: u64,
    /// Between exits and the entries that follow, in all.
    pub exit_to_entry_ns: u64,
    /// How many of them took [2^b, 2^(b+1)) ns; bucket 0 holds 0 too, the last one everything longer.
    pub exit_to_entry_count: [u64; LATENCY_BUCKETS],
}

impl VcpuCounters {
    /// The counters as the BPF programs or the lab keep them.
    pub fn from_abi(raw: &abi::unspin_vcpu_counters) -> VcpuCounters {
        VcpuCounters {
            vm: raw.vm,
            vcpu: raw.vcpu,
            thread: raw.thread,
            process: raw.process,
            exits: raw.exits,
            ple_exits: raw.ple_exits,
            ple_exits_user: raw.ple_exits_user,
            ple_exits_unknown_mode: raw.ple_exits_unknown_mode,
            on_spin: raw.on_spin,
            on_spin_no_yield: raw.on_spin_no_yield,
            yield_to_boosted: raw.yield_to_boosted,
            yield_to_refused: raw.yield_to_refused,
            yield_to_failed: raw.yield_to_failed,
            switches_in: raw.switches_in,
            switches_out_runnable: raw.switches_out_runnable,
            switches_out_asleep: raw.switches_out_asleep,
            running_ns: raw.running_ns,
            runnable_ns: raw.runnable_ns,
            asleep_ns: raw.asleep_ns,
            wall_ns: raw.wall_ns,
            exit_to_entry_ns: raw.exit_to_entry_ns,
            exit_to_entry_count: raw.exit_to_entry_count,
        }
    }

    /// What was counted between `earlier` and `self`, of the same thread. Never below 0: a counter that went back
    /// (another thread's, by mistake) gives 0.
    #[must_use]
    pub fn since(&self, earlier: &VcpuCounters) -> VcpuCounters {
        let mut difference = self.clone();
        for (mine, theirs) in difference
            .numbers()
            .into_iter()
            .zip(earlier.clone().numbers())
        {
            *mine = mine.saturating_sub(*theirs);
        }
        difference
    }

    /// Adds another thread's counters to these; vm, vcpu, thread and process stay.
    pub fn add(&mut self, other: &VcpuCounters) {
        for (mine, theirs) in self.numbers().into_iter().zip(other.clone().numbers()) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// `running + runnable + asleep - wall`, in nanoseconds: 0 unless something was missed.
    pub fn conservation_error_ns(&self) -> i128 {
        i128::from(self.running_ns) + i128::from(self.runnable_ns) + i128::from(self.asleep_ns)
            - i128::from(self.wall_ns)
    }

    /// Nanoseconds below which a share of the exits, in percent (0 to 100), was handled; `None` without exits.
    /// The upper bound of a bucket, so at most twice the true figure.
    pub fn exit_to_entry_percentile_ns(&self, percent: u32) -> Option<u64> {
        let total: u64 = self.exit_to_entry_count.iter().sum();
        let wanted = (u128::from(total) * u128::from(percent.min(100)))
            .div_ceil(100)
            .max(1);
        let mut seen = 0;
        (0u32..)
            .zip(self.exit_to_entry_count)
            .find_map(|(bucket, count)| {
                seen += u128::from(count);
                (count > 0 && seen >= wanted).then(|| 1u64 << (bucket + 1))
            })
    }

    fn numbers(&mut self) -> Vec<&mut u64> {
        let VcpuCounters {
            vm: _,
            vcpu: _,
            thread: _,
            process: _,
            exits,
            ple_exits,
            ple_exits_user,
            ple_exits_unknown_mode,
            on_spin,
            on_spin_no_yield,
            yield_to_boosted,
            yield_to_refused,
            yield_to_failed,
            switches_in,
            switches_out_runnable,
            switches_out_asleep,
            running_ns,
            runnable_ns,
            asleep_ns,
            wall_ns,
            exit_to_entry_ns,
            exit_to_entry_count,
        } = self;
        let mut all = vec![
            exits,
            ple_exits,
            ple_exits_user,
            ple_exits_unknown_mode,
            on_spin,
            on_spin_no_yield,
            yield_to_boosted,
            yield_to_refused,
            yield_to_failed,
            switches_in,
            switches_out_runnable,
            switches_out_asleep,
            running_ns,
            runnable_ns,
            asleep_ns,
            wall_ns,
            exit_to_entry_ns,
        ];
        all.extend(exit_to_entry_count);
        all
    }
}
