// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weights of tasks, and virtual times by the clocks of their queues: the caller of `policy/mechanics/weights.h` and
//! `policy/mechanics/virtual_time.h`, as bpf/scheduler/weights.bpf.h and bpf/scheduler/virtual_time.bpf.h are.

use std::iter::successors;

use unspin_policy::mechanics::{
    QueueClock, Weight, charged_vtime_ns, moved_vtime_ns, placed_vtime_ns, woken_vtime_ns,
};

use super::{Key, Steer};
use crate::ids::{Cpu, Group, Task};

impl Steer {
    /// A group and its ancestors, without the root.
    fn groups_above(&self, group: Group) -> impl Iterator<Item = Group> + '_ {
        let below_root = |group: Group| (group != Group(0)).then_some(group);
        successors(below_root(group), move |group| {
            below_root(self.groups[group.index()].parent)
        })
    }

    /// The task's weight, flattened through its groups.
    pub(super) fn flat_weight(&self, task: Task) -> Weight {
        let entity = &self.tasks[task.index()];
        let groups = self.groups_above(entity.group);
        Weight::flat(
            entity.weight,
            groups.map(|group| &self.groups[group.index()].active),
        )
    }

    /// The task becomes runnable, or stops being so: `count_weight()`.
    pub(super) fn activate(&mut self, task: Task, active: bool) {
        let entity = &self.tasks[task.index()];
        let (mut group, weight) = (entity.group, i64::from(entity.weight));
        let mut change = if active { weight } else { -weight };
        while change != 0 {
            let known = &mut self.groups[group.index()];
            change = known.active.add(change);
            if group == Group(0) {
                return;
            }
            group = known.parent;
        }
    }

    pub(super) fn charge(&mut self, now_ns: u64, cpu: Cpu) {
        let here = &mut self.cpus[cpu.index()];
        let elapsed_ns = now_ns - here.since_ns;
        here.slice_left_ns = here.left_ns(now_ns);
        here.since_ns = now_ns;
        if let Some(current) = here.current {
            self.tasks[current.index()].awake_ns += elapsed_ns;
        }
        let here = &mut self.cpus[cpu.index()];
        let Some(slice) = here.slice.filter(|_| here.current.is_some()) else {
            return;
        };
        let weight = self.flat_weight(slice);
        self.cpus[cpu.index()].crowd.ran_ns += elapsed_ns;
        let (queued, place) = (
            self.tasks[slice.index()].queued,
            self.tasks[slice.index()].cpu,
        );
        if queued {
            self.take_from_queue(slice);
        }
        let clock_ns = self.clock(self.tasks[slice.index()].home).now_ns;
        let slice_ns = self.slice_ns;
        let entity = &mut self.tasks[slice.index()];
        entity.charged_ns += elapsed_ns;
        entity.vtime_ns = charged_vtime_ns(entity.vtime_ns, weight, elapsed_ns, clock_ns, slice_ns);
        entity.charged_weight = weight;
        if let (true, Some(place)) = (queued, place) {
            self.queue(slice, place, false);
        }
    }

    /// The clock of a queue; `None`: the shared one's.
    pub(super) fn clock(&self, queue: Option<Cpu>) -> &QueueClock {
        queue.map_or(&self.shared_clock, |cpu| &self.clocks[cpu.index()])
    }

    /// The task's virtual time, comparable with those of other queues.
    pub(super) fn position_ns(&self, task: Task) -> u64 {
        let entity = &self.tasks[task.index()];
        let offset_ns = self.clock(entity.home).offset_ns;
        entity.vtime_ns.wrapping_add(offset_ns)
    }

    /// The task's key in the queue where it waits.
    pub(super) fn key(&self, task: Task) -> Key {
        (self.tasks[task.index()].vtime_ns as i64, task.0)
    }

    /// The task enters a queue, possibly again; `wakes`: from sleep: `place_task()`.
    pub(super) fn place_task(&mut self, task: Task, queue: Option<Cpu>, wakes: bool) {
        let weight = self.flat_weight(task);
        let to = *self.clock(queue);
        let from_offset_ns = self.clock(self.tasks[task.index()].home).offset_ns;
        let nobody_waits = queue.is_some_and(|cpu| self.own[cpu.index()].is_empty());
        let clock_ns = to.placing_ns(self.shared_clock.now_ns, nobody_waits);
        let woken_by_ns = self.crowd_clock_ns(queue, clock_ns);
        let slice_ns = self.slice_ns;
        let entity = &mut self.tasks[task.index()];
        let vtime_ns = moved_vtime_ns(entity.vtime_ns, from_offset_ns, to.offset_ns);
        entity.home = queue;
        entity.vtime_ns = placed_vtime_ns(vtime_ns, weight, 0, clock_ns, slice_ns);
        if wakes {
            entity.charged_weight = weight;
            entity.vtime_ns = woken_vtime_ns(
                entity.vtime_ns,
                weight,
                entity.lag_ns,
                entity.burst_ns,
                woken_by_ns,
                slice_ns,
            );
        }
    }
}
