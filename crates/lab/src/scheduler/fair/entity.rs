// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is scheduled (a task, or a group on one pCPU), and the queue that a group has on a pCPU.

use super::rules::Load;
use crate::ids::Cpu;

/// No entity, no queue.
pub(super) const NONE: u32 = u32::MAX;

/// The kernel's `struct sched_entity`. Virtual times are i64: with the least weight they advance 1,024 times as fast as
/// real time, so they hold 100 days.
#[derive(Clone, Debug)]
pub(super) struct Entity {
    pub load: Load,
    pub vruntime: i64,
    /// EEVDF: relative to `vruntime` while `relative_deadline` is set.
    pub deadline: i64,
    /// EEVDF: lag while it is not queued.
    pub lag: i64,
    /// EEVDF: see [`super::rules::Version::has_protected_until`].
    pub protected_until: i64,
    pub exec_start_ns: u64,
    pub sum_exec_ns: u64,
    /// `sum_exec_ns` when it was picked.
    pub picked_exec_ns: u64,
    /// The queue it is on, was last on, or is joining.
    pub queue: u32,
    pub parent: u32,
    /// For a group, its own queue on this pCPU; [`NONE`]: a task.
    pub own_queue: u32,
    pub depth: u32,
    /// For a task.
    pub task: u32,
    pub on_queue: bool,
    /// It sleeps, but stays in the queue until its lag is used up (delayed dequeue).
    pub delayed: bool,
    pub relative_deadline: bool,
}

impl Entity {
    pub fn new(load: Load) -> Entity {
        Entity {
            load,
            vruntime: 0,
            deadline: 0,
            lag: 0,
            protected_until: 0,
            exec_start_ns: 0,
            sum_exec_ns: 0,
            picked_exec_ns: 0,
            queue: NONE,
            parent: NONE,
            own_queue: NONE,
            depth: 0,
            task: NONE,
            on_queue: false,
            delayed: false,
            relative_deadline: false,
        }
    }

    pub fn is_task(&self) -> bool {
        self.own_queue == NONE
    }
}

/// The kernel's `struct cfs_rq`. Its tree is a sorted array: with some tens of entities moving them costs less than a
/// tree.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub cpu: Cpu,
    /// The group that it belongs to; 0: the root.
    pub group: u32,
    /// All queued entities except the current one, by virtual runtime (CFS) or deadline (EEVDF); equal keys in order of
    /// arrival.
    sorted: Vec<(i64, u32)>,
    pub current: u32,
    pub next: u32,
    pub last: u32,
    pub skip: u32,
    /// Number of entities, the current one included.
    pub queued: u32,
    /// Sum of their weights.
    pub load: u64,
    /// CFS: never decreases. EEVDF: the base of virtual times in `weighted_sum`.
    pub base_vruntime: i64,
    /// EEVDF: sum of weight x (virtual runtime - base) of all except the current one. Below 2^38 x 2^63.
    pub weighted_sum: i128,
    /// EEVDF: sum of those weights.
    pub weight_sum: i64,
    /// Average of `load` with a half-life of 32 ms, see [`super::shares`].
    pub load_average: u64,
    /// Time up to which it was averaged, ns.
    pub averaged_ns: u64,
}

impl Queue {
    pub fn new(cpu: Cpu, group: u32) -> Queue {
        Queue {
            cpu,
            group,
            sorted: Vec::with_capacity(8),
            current: NONE,
            next: NONE,
            last: NONE,
            skip: NONE,
            queued: 0,
            load: 0,
            base_vruntime: 0,
            weighted_sum: 0,
            weight_sum: 0,
            load_average: 0,
            averaged_ns: 0,
        }
    }

    pub fn insert(&mut self, key: i64, entity: u32) {
        let position = self.sorted.partition_point(|(other, _)| *other <= key);
        self.sorted.insert(position, (key, entity));
    }

    /// Removes it; `key` must be the one with which it was inserted.
    pub fn remove(&mut self, key: i64, entity: u32) {
        let start = self.sorted.partition_point(|(other, _)| *other < key);
        let found = self.sorted[start..]
            .iter()
            .position(|(_, id)| *id == entity);
        let position = found.expect("an entity is queued under its key");
        self.sorted.remove(start + position);
    }

    pub fn first(&self) -> u32 {
        self.sorted.first().map_or(NONE, |(_, entity)| *entity)
    }

    pub fn second(&self) -> u32 {
        self.sorted.get(1).map_or(NONE, |(_, entity)| *entity)
    }

    /// In the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.sorted.iter().map(|(_, entity)| *entity)
    }
}
