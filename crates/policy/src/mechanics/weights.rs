// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/weights.h`.

use crate::raw;

/// The weight of nice 0, and a group's default weight.
pub const NICE_0_WEIGHT: u32 = raw::UNSPIN_NICE_0_WEIGHT;
/// The greatest level of cgroups below the root that counts; deeper cgroups count as their ancestor at this level.
pub const DEEPEST_GROUP: u32 = raw::UNSPIN_DEEPEST_GROUP;
/// The longest time that is charged at once, ns.
pub const LONGEST_RUN_NS: u64 = raw::UNSPIN_LONGEST_RUN_NS;

/// The weight of a nice value from -20 to 19.
pub fn weight_of_nice(nice: i32) -> u32 {
    // SAFETY: a function of numbers alone.
    unsafe { raw::unspin_weight_of_nice(nice) }
}

/// The weight of a cgroup with this `cpu.weight`, 1 to 10,000.
pub fn weight_of_cgroup(cpu_weight: u32) -> u32 {
    // SAFETY: as above.
    unsafe { raw::unspin_weight_of_cgroup(cpu_weight) }
}

/// A group's weight, and the sum of the active weights in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupWeight(raw::unspin_group_weight);

impl GroupWeight {
    /// A group of this weight without active members.
    pub fn new(weight: u32) -> GroupWeight {
        GroupWeight(raw::unspin_group_weight {
            weight,
            ..Default::default()
        })
    }

    /// The sum of the active weights in it changes by `change`. Returns the change of its parent's sum.
    pub fn add(&mut self, change: i64) -> i64 {
        // SAFETY: a valid struct for the length of the call.
        unsafe { raw::unspin_group_add(&mut self.0, change) }
    }

    /// Its weight changes. Returns the change of its parent's sum.
    pub fn set_weight(&mut self, weight: u32) -> i64 {
        // SAFETY: as above.
        unsafe { raw::unspin_group_set_weight(&mut self.0, weight) }
    }

    /// The sum of the active weights in it.
    pub fn sum(&self) -> i64 {
        self.0.sum
    }
}

/// A task's effective weight: its own weight flattened through its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u64);

impl Weight {
    /// The effective weight of a task of this weight (3 to 88,761) in these groups, from its own up to the root,
    /// without the root.
    pub fn flat<'a>(own_weight: u32, groups: impl IntoIterator<Item = &'a GroupWeight>) -> Weight {
        // SAFETY: functions of numbers alone.
        unsafe {
            let own = raw::unspin_weight_of_task(own_weight);
            let all = groups.into_iter().fold(own, |weight, group| {
                raw::unspin_weight_in_parent(weight, group.0.weight, group.0.sum)
            });
            Weight(raw::unspin_weight_among_all(all))
        }
    }

    /// The virtual time that a CPU time costs, weighted ns; for nice 0 at the root the two are equal.
    pub fn weighted_ns(self, ran_ns: u64) -> u64 {
        // SAFETY: as above; a weight is 1 or more.
        unsafe { raw::unspin_weighted(self.0, ran_ns) }
    }

    /// How far tasks of this weight may be apart because of what they have or have not run, weighted ns.
    pub fn reach_ns(self, slice_ns: u64) -> u64 {
        // SAFETY: as above.
        unsafe { raw::unspin_reach(self.0, slice_ns) }
    }

    pub(super) fn raw(self) -> u64 {
        self.0
    }
}
