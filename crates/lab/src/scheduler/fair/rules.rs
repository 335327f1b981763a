// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between the versions of the kernel's fair class, and its tunables.

use crate::scheduler::NICE_0_WEIGHT;
use unspin_policy::Deboost;

/// The kernel version whose kernel/sched/fair.c is followed, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// CFS of Linux 3.5.
    Cfs3_5,
    /// CFS of Linux 3.19.
    Cfs3_19,
    /// CFS of Linux 4.13.
    Cfs4_13,
    /// CFS of Linux 5.6.
    Cfs5_6,
    /// EEVDF of Linux 6.6.
    Eevdf6_6,
    /// EEVDF of Linux 6.12 as released (its later stable updates honour the next buddy).
    Eevdf6_12,
    /// EEVDF of Linux 6.19.
    Eevdf6_19,
    /// EEVDF of Linux 7.2.
    Eevdf7_2,
}

impl Version {
    /// All of them, with the names that users type.
    pub const ALL: [(&'static str, Version); 8] = [
        ("cfs-3.5", Version::Cfs3_5),
        ("cfs-3.19", Version::Cfs3_19),
        ("cfs-4.13", Version::Cfs4_13),
        ("cfs-5.6", Version::Cfs5_6),
        ("eevdf-6.6", Version::Eevdf6_6),
        ("eevdf-6.12", Version::Eevdf6_12),
        ("eevdf-6.19", Version::Eevdf6_19),
        ("eevdf-7.2", Version::Eevdf7_2),
    ];

    /// Earliest eligible virtual deadline first, since 6.6; otherwise smallest virtual runtime first.
    pub fn is_eevdf(self) -> bool {
        self >= Version::Eevdf6_6
    }

    /// Whether a switch leaves groups that hold both tasks as they are, so that their slices continue:
    /// pick_next_task_fair() since Linux 3.15; before, put_prev_task_fair() and set_next_entity() went up to the root.
    pub(super) fn keeps_common_groups(self) -> bool {
        self >= Version::Cfs3_19
    }

    /// yield_to() answers -ESRCH when neither queue has a second task: kernel/sched/core.c since Linux 3.9.
    pub(super) fn refuses_yield_when_alone(self) -> bool {
        self >= Version::Cfs3_19
    }

    /// Weights carry ten more bits: `scale_load()`, on 64-bit machines since Linux 4.7 (kernel/sched/sched.h).
    pub(super) fn weight_shift(self) -> u32 {
        if self >= Version::Cfs4_13 { 10 } else { 0 }
    }

    /// A group's share counts its averaged load where that is above the present one: calc_group_shares() since Linux 4.15.
    pub(super) fn shares_by_averaged_load(self) -> bool {
        self >= Version::Cfs5_6
    }

    /// An entity that sleeps while ahead of its share stays queued until picked: DELAY_DEQUEUE, since Linux 6.12.
    pub(super) fn delays_dequeue(self) -> bool {
        self >= Version::Eevdf6_12
    }

    /// For an entity that stays queued, the lag at which it went to sleep counts: dequeue_entity() and
    /// update_entity_lag() of 7.2.
    pub(super) fn keeps_lag_while_delayed(self) -> bool {
        self >= Version::Eevdf7_2
    }

    /// A migrating task keeps the distance to its deadline: PLACE_REL_DEADLINE, since Linux 6.12.
    pub(super) fn keeps_relative_deadline(self) -> bool {
        self >= Version::Eevdf6_12
    }

    /// A new task does not preempt, nor does a group that only waits to be dequeued: wakeup_preempt_fair() of 6.19 and
    /// 7.2.
    pub(super) fn new_tasks_wait(self) -> bool {
        self >= Version::Eevdf6_19
    }

    /// Weights in averages of virtual time lose the extra bits again: scale_load_down() in avg_vruntime_add() up to 6.19.
    pub(super) fn average_shift(self) -> u32 {
        if self >= Version::Eevdf7_2 {
            0
        } else {
            self.weight_shift()
        }
    }

    /// Changes of weight move the virtual runtime as well: reweight_eevdf() since Linux 6.7.
    pub(super) fn reweight_moves(self) -> bool {
        self >= Version::Eevdf6_12
    }

    /// The next buddy is honoured while eligible: PICK_BUDDY, commit 2a77e4be12cb. Before that only under NEXT_BUDDY,
    /// which is off.
    pub fn picks_next_buddy(self) -> bool {
        self >= Version::Eevdf6_19
    }

    /// A yield forfeits the rest of the slice: commit 79104becf42b, "Forfeit vruntime on yield".
    pub(super) fn yield_forfeits(self) -> bool {
        self >= Version::Eevdf6_19
    }

    /// The protected part of a slice has its own field, `vprot`: since Linux 6.17. Before, protection lasted as long as
    /// the deadline was the one set when the task was picked.
    pub(super) fn has_protected_until(self) -> bool {
        self >= Version::Eevdf6_19
    }

    /// A task that has lost its protection is rescheduled at its next accounting: in 6.12 while it is not eligible
    /// (did_preempt_short()), since 6.17 always.
    pub(super) fn ends_with_protection(self) -> bool {
        self >= Version::Eevdf6_12
    }

    /// A timer ends the slice, not only the tick: HRTICK, on by default on x86-64 in Linux 7.2 (features.h).
    pub(super) fn has_slice_timer(self) -> bool {
        self >= Version::Eevdf7_2
    }

    /// The bound on lag is a slice and a tick (entity_lag() of 7.2); before, two slices, and at least a tick.
    pub(super) fn lag_limit_ns(self, slice_ns: u64, tick_ns: u64) -> u64 {
        if self >= Version::Eevdf7_2 {
            slice_ns + tick_ns
        } else {
            (2 * slice_ns).max(tick_ns)
        }
    }
}

/// A scheduler's tunable times, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// The period in which every task of a CFS queue runs once, for up to eight tasks.
    pub latency_ns: u64,
    /// The least slice of CFS.
    pub least_granularity_ns: u64,
    /// How far the current task must be ahead of the woken one, in virtual runtime, to be preempted, CFS.
    pub wakeup_granularity_ns: u64,
    /// The slice of EEVDF.
    pub base_slice_ns: u64,
    /// Between two ticks.
    pub tick_ns: u64,
    /// A task that ran within this time is cache-hot: `sysctl_sched_migration_cost`.
    pub migration_cost_ns: u64,
}

/// `sched_nr_latency`: with more runnable entities the period grows.
pub(super) const NR_LATENCY: u32 = 8;

impl Tunables {
    /// The kernel's defaults for a machine of that many pCPUs: 6 ms, 0.75 ms, 1 ms and a base slice of 0.75 ms (0.70 ms
    /// since Linux 6.14), times 1 + log2(min(cpus, 8)) (get_update_sysctl_factor()).
    pub fn of(version: Version, cpus: u32, tick_ns: u64) -> Tunables {
        let factor = u64::from(1 + cpus.clamp(1, 8).ilog2());
        let base_slice_ns = if version >= Version::Eevdf6_19 {
            700_000
        } else {
            750_000
        };
        Tunables {
            latency_ns: 6_000_000 * factor,
            least_granularity_ns: 750_000 * factor,
            wakeup_granularity_ns: 1_000_000 * factor,
            base_slice_ns: base_slice_ns * factor,
            tick_ns,
            migration_cost_ns: 500_000,
        }
    }
}

/// A weight, and its inverse, by which divisions become multiplications: the kernel's `struct load_weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// With the version's extra bits. 1 to 2^38.
    pub weight: u64,
    /// (2^32 - 1) / the weight without them.
    inverse: u64,
    /// The weight of nice 0, with the version's extra bits.
    is_nice_0: bool,
}

impl Load {
    pub fn new(weight: u64, shift: u32) -> Load {
        let weight = weight.max(1);
        Load {
            weight,
            inverse: u64::from(u32::MAX) / (weight >> shift).max(1),
            is_nice_0: weight == u64::from(NICE_0_WEIGHT) << shift,
        }
    }

    /// Real time to virtual time: calc_delta_fair(), with the kernel's __calc_delta() and its rounding.
    /// `delta_ns` below 2^52 (52 days) keeps the product below 2^84.
    pub fn to_virtual(self, delta_ns: u64) -> i64 {
        if self.is_nice_0 {
            return delta_ns as i64;
        }
        let factor = u64::from(NICE_0_WEIGHT) * self.inverse;
        let excess = (64 - factor.leading_zeros()).saturating_sub(32);
        let product = u128::from(delta_ns) * u128::from(factor >> excess);
        (product >> (32 - excess)) as i64
    }

    /// Virtual time to real time, rounded up: the inverse of [`Load::to_virtual`].
    pub fn to_real(self, virtual_ns: i64, shift: u32) -> u64 {
        let nice_0 = u128::from(NICE_0_WEIGHT) << shift;
        let product = u128::from(virtual_ns.max(0) as u64) * u128::from(self.weight);
        u64::try_from(product.div_ceil(nice_0)).unwrap_or(u64::MAX)
    }
}

/// Options of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// Balance scheduling (Sukwong and Kim, EuroSys 2011): no two tasks of a family in one queue while another queue
    /// has none.
    pub balance: bool,
    /// The debooster of VEE'21, ruling 30.
    pub debooster: Deboost,
    /// Lag credit for the target of a directed yield (proposed upstream in June 2026).
    pub lag_credit: bool,
}
