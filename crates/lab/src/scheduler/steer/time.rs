// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual time by weight, and the clocks of queues: the model of bpf/scheduler/virtual_time.bpf.h, which says why they are as they are,
//! and of bpf/scheduler/weights.bpf.h. Not modelled: the bound on waits of 2 s (bpf/scheduler/starvation_bound.bpf.h), for there is no watchdog here.

use super::{NICE_0_WEIGHT, Steer, TICK_NS};
use crate::ids::{Cpu, Group, Task};

/// Bits of a flat weight's fraction.
const FRACTION_BITS: u32 = 20;

/// So much time at that weight, as virtual time.
pub(super) fn weighted(weight: u128, ns: u64) -> i64 {
    let scaled = u128::from(ns) * (u128::from(NICE_0_WEIGHT) << FRACTION_BITS) / weight.max(1);
    scaled.min(i64::MAX as u128 / 4) as i64
}

impl Steer {
    /// The weight of a task with all its groups', `NICE_0_WEIGHT << FRACTION_BITS` for nice 0: at each level its share of what
    /// is active there.
    pub(super) fn flat_weight(&self, task: Task) -> u128 {
        let entity = &self.tasks[task.index()];
        // With 20 bits of fraction, as shares can be small.
        let mut weight = u128::from(entity.weight) << FRACTION_BITS;
        let mut group = entity.group;
        while group != Group(0) {
            let known = &self.groups[group.index()];
            // Weights are at most 2^17 and there are few levels: the product fits 128 bits easily.
            weight = weight * u128::from(known.weight) / u128::from(known.active.max(1));
            weight = weight.max(1);
            group = known.parent;
        }
        weight
    }

    pub(super) fn activate(&mut self, task: Task, active: bool) {
        let (mut group, mut weight) = {
            let entity = &self.tasks[task.index()];
            (entity.group, u64::from(entity.weight))
        };
        loop {
            let known = &mut self.groups[group.index()];
            let before = known.active;
            known.active = if active {
                before + weight
            } else {
                before - weight
            };
            // A group counts above as long as anything in it is active.
            let edge = if active { before } else { known.active };
            if edge != 0 || group == Group(0) {
                return;
            }
            weight = u64::from(known.weight);
            group = known.parent;
        }
    }

    pub(super) fn charge(&mut self, now_ns: u64, cpu: Cpu) {
        let here = &mut self.cpus[cpu.index()];
        let elapsed_ns = now_ns - here.since_ns;
        here.since_ns = now_ns;
        here.slice_left_ns = here.slice_left_ns.saturating_sub(elapsed_ns);
        let Some(slice) = here.slice.filter(|_| here.current.is_some()) else {
            return;
        };
        let weight = self.flat_weight(slice);
        let (queued, place) = (
            self.tasks[slice.index()].queued,
            self.tasks[slice.index()].cpu,
        );
        if queued {
            self.take_from_queue(slice);
        }
        self.tasks[slice.index()].charged_ns += elapsed_ns;
        self.tasks[slice.index()].vtime_ns += weighted(weight, elapsed_ns);
        self.clamp_vtime(slice, self.clock_ns(self.tasks[slice.index()].home));
        if let (true, Some(place)) = (queued, place) {
            self.queue(slice, place);
        }
    }

    /// The clock of a queue.
    pub(super) fn clock_ns(&self, queue: Option<Cpu>) -> i64 {
        queue.map_or(self.shared_now_ns, |cpu| self.clocks[cpu.index()].now_ns)
    }

    pub(super) fn offset_ns(&self, queue: Option<Cpu>) -> i64 {
        queue.map_or(0, |cpu| self.clocks[cpu.index()].offset_ns)
    }

    /// How far a task may be from others for what it has run, or not run: `reach()`.
    pub(super) fn reach_ns(&self, task: Task) -> i64 {
        weighted(self.flat_weight(task), 2 * self.slice_ns + TICK_NS)
    }

    /// No further behind than that.
    pub(super) fn clamp_vtime(&mut self, task: Task, now_ns: i64) {
        let floor_ns = now_ns - self.reach_ns(task);
        let entity = &mut self.tasks[task.index()];
        entity.vtime_ns = entity.vtime_ns.max(floor_ns);
    }

    /// The task comes to a queue, or to it again: `place_task()`.
    pub(super) fn place_task(&mut self, task: Task, queue: Option<Cpu>) {
        let home = self.tasks[task.index()].home;
        if home != queue {
            let moved_ns = self.offset_ns(home) - self.offset_ns(queue);
            let entity = &mut self.tasks[task.index()];
            entity.vtime_ns += moved_ns;
            entity.home = queue;
        }
        let mut now_ns = self.clock_ns(queue);
        if let Some(cpu) = queue.filter(|cpu| self.own[cpu.index()].is_empty()) {
            // A queue of a pCPU that nobody waits in is as far as the shared one.
            now_ns = now_ns.max(self.shared_now_ns - self.clocks[cpu.index()].offset_ns);
        }
        self.clamp_vtime(task, now_ns);
    }

    /// How far the one that is ahead is beyond its reach: `beyond()`.
    pub(super) fn beyond_ns(&self, ahead: Task, by_ns: i64) -> i64 {
        let plain_ns = (2 * self.slice_ns + TICK_NS) as i64;
        (by_ns - self.reach_ns(ahead).max(plain_ns)).max(0)
    }
}
