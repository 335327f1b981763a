// SPDX-License-Identifier: MIT OR Apache-2.0
//! How entities join and leave queues and become current: the common part of CFS and EEVDF in kernel/sched/fair.c.

use super::Fair;
use super::entity::NONE;

/// Why an entity joins a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joining {
    /// For the first time: ENQUEUE_INITIAL.
    New,
    /// It slept.
    Wakeup,
    /// It comes from another pCPU's queue.
    Migrated,
}

/// Why an entity leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// DEQUEUE_SLEEP.
    Sleep,
    /// It slept in the queue and was picked: DEQUEUE_SLEEP | DEQUEUE_DELAYED.
    Delayed,
    /// To another pCPU's queue.
    Migrated,
}

impl Fair {
    fn key(&self, entity: u32) -> i64 {
        let entity = &self.entities[entity as usize];
        if self.eevdf {
            entity.deadline
        } else {
            entity.vruntime
        }
    }

    /// Inserts it into the sorted part of its queue: __enqueue_entity().
    pub(super) fn insert(&mut self, entity: u32) {
        let key = self.key(entity);
        let weight = self.average_weight(entity);
        let who = &self.entities[entity as usize];
        let queue = &mut self.queues[who.queue as usize];
        queue.insert(key, entity);
        if self.eevdf {
            queue.weighted_sum +=
                i128::from(who.vruntime - queue.base_vruntime) * i128::from(weight);
            queue.weight_sum += weight;
        }
    }

    /// Removes it from the sorted part of its queue: __dequeue_entity().
    pub(super) fn remove(&mut self, entity: u32) {
        let key = self.key(entity);
        let weight = self.average_weight(entity);
        let who = &self.entities[entity as usize];
        let queue = &mut self.queues[who.queue as usize];
        queue.remove(key, entity);
        if self.eevdf {
            queue.weighted_sum -=
                i128::from(who.vruntime - queue.base_vruntime) * i128::from(weight);
            queue.weight_sum -= weight;
        }
    }

    /// Charges the current entity of a queue for the time since it was last charged: update_curr().
    pub(super) fn update_current(&mut self, now_ns: u64, queue: u32) {
        let current = self.queues[queue as usize].current;
        if current == NONE || !self.entities[current as usize].on_queue {
            return;
        }
        let entity = &mut self.entities[current as usize];
        let delta_ns = now_ns.saturating_sub(entity.exec_start_ns);
        if delta_ns == 0 {
            return;
        }
        entity.exec_start_ns = now_ns;
        entity.sum_exec_ns += delta_ns;
        entity.vruntime += entity.load.to_virtual(delta_ns);
        if self.eevdf {
            self.eevdf_slice_used(queue, current);
        } else {
            self.advance_least_vruntime(queue);
        }
    }

    /// Joins its queue: enqueue_entity().
    fn enqueue_entity(&mut self, now_ns: u64, entity: u32, joining: Joining) {
        let queue = self.entities[entity as usize].queue;
        let is_current = self.queues[queue as usize].current == entity;
        self.update_current(now_ns, queue);
        self.update_share(now_ns, entity);
        if self.eevdf {
            self.eevdf_place(entity, joining == Joining::New);
        } else {
            self.cfs_place(entity, joining);
        }
        let weight = self.entities[entity as usize].load.weight;
        self.average_load(now_ns, queue);
        let joined = &mut self.queues[queue as usize];
        joined.load += weight;
        joined.queued += 1;
        if !is_current {
            self.insert(entity);
        }
        self.entities[entity as usize].on_queue = true;
    }

    /// Leaves its queue, unless this version keeps a sleeper that is ahead of its share: dequeue_entity(). False: it
    /// stays.
    fn dequeue_entity(&mut self, now_ns: u64, entity: u32, leaving: Leaving) -> bool {
        let queue = self.entities[entity as usize].queue;
        self.update_current(now_ns, queue);
        self.clear_buddies(entity);
        if leaving == Leaving::Sleep && self.version.delays_dequeue() && !self.eligible(entity) {
            if self.version.keeps_lag_while_delayed() {
                self.update_lag(entity);
            }
            self.entities[entity as usize].delayed = true;
            return false;
        }
        if self.eevdf {
            self.update_lag(entity);
        }
        if self.queues[queue as usize].current != entity {
            self.remove(entity);
        }
        self.average_load(now_ns, queue);
        let who = &mut self.entities[entity as usize];
        let left = &mut self.queues[queue as usize];
        who.on_queue = false;
        if leaving == Leaving::Migrated && self.version.keeps_relative_deadline() {
            who.deadline -= who.vruntime;
            who.relative_deadline = true;
        }
        left.load -= who.load.weight;
        left.queued -= 1;
        if leaving == Leaving::Delayed {
            who.delayed = false;
        }
        if !self.eevdf {
            if leaving == Leaving::Migrated {
                self.entities[entity as usize].vruntime -=
                    self.queues[queue as usize].base_vruntime;
            }
            self.advance_least_vruntime(queue);
        }
        self.update_share(now_ns, entity);
        true
    }

    /// A task joins, with the groups around it that are not queued: enqueue_task_fair(). Its queue must be set.
    pub(super) fn enqueue_task(&mut self, now_ns: u64, entity: u32, joining: Joining) {
        let mut joining = joining;
        let mut at = entity;
        while at != NONE && !self.entities[at as usize].on_queue {
            self.enqueue_entity(now_ns, at, joining);
            joining = Joining::Wakeup;
            at = self.entities[at as usize].parent;
        }
        if at != NONE && self.entities[at as usize].delayed {
            self.requeue_delayed(now_ns, at);
        }
        self.update_shares_up(now_ns, at);
        let cpu = self.queues[self.entities[entity as usize].queue as usize].cpu;
        self.cpus[cpu.index()].queued += 1;
    }

    /// An entity leaves, with the groups around it that become empty: dequeue_entities(). False: the task sleeps on the
    /// queue.
    pub(super) fn dequeue_entities(&mut self, now_ns: u64, entity: u32, leaving: Leaving) -> bool {
        let mut leaving = leaving;
        let sleeps = leaving != Leaving::Migrated;
        let is_task = self.entities[entity as usize].is_task();
        let mut at = entity;
        while at != NONE {
            if !self.dequeue_entity(now_ns, at, leaving) {
                if is_task && at == entity {
                    return false;
                }
                break;
            }
            let queue = self.entities[at as usize].queue;
            at = self.entities[at as usize].parent;
            if self.queues[queue as usize].load > 0 {
                // The rest of the group's slice is for its other tasks.
                if sleeps && at != NONE {
                    self.set_next_buddy(at);
                }
                break;
            }
            leaving = Leaving::Sleep;
        }
        self.update_shares_up(now_ns, at);
        if is_task {
            let cpu = self.queues[self.entities[entity as usize].queue as usize].cpu;
            self.cpus[cpu.index()].queued -= 1;
        }
        true
    }

    fn update_shares_up(&mut self, now_ns: u64, from: u32) {
        let mut at = from;
        while at != NONE {
            self.update_share(now_ns, at);
            at = self.entities[at as usize].parent;
        }
    }

    /// It becomes the current entity of its queue: set_next_entity().
    pub(super) fn set_current(&mut self, now_ns: u64, entity: u32) {
        if self.eevdf {
            self.clear_buddies(entity);
        }
        if self.entities[entity as usize].on_queue {
            self.remove(entity);
            // All slices are equal, so set_protect_slice() protects up to the deadline.
            let who = &mut self.entities[entity as usize];
            who.protected_until = who.deadline;
        }
        let who = &mut self.entities[entity as usize];
        who.exec_start_ns = now_ns;
        who.picked_exec_ns = who.sum_exec_ns;
        self.queues[who.queue as usize].current = entity;
    }

    /// It is no longer the current entity of its queue: put_prev_entity().
    fn put_current(&mut self, now_ns: u64, entity: u32) {
        let queue = self.entities[entity as usize].queue;
        if self.entities[entity as usize].on_queue {
            self.update_current(now_ns, queue);
            self.insert(entity);
        }
        self.queues[queue as usize].current = NONE;
    }

    /// Entities of a pCPU, from the lowest that is current, stop being current, up to the first that `next` needs as
    /// current: put_prev_task_fair(). `next` [`NONE`]: all of them.
    pub(super) fn put_down_to(&mut self, now_ns: u64, from: u32, next: u32) {
        let mut at = from;
        while at != NONE && !self.is_around(at, next) {
            let (queue, parent) = {
                let entity = &self.entities[at as usize];
                (entity.queue, entity.parent)
            };
            if self.queues[queue as usize].current == at {
                self.put_current(now_ns, at);
            }
            at = parent;
        }
    }

    /// Whether an entity is `inner` or a group around it.
    fn is_around(&self, entity: u32, inner: u32) -> bool {
        let mut at = inner;
        while at != NONE {
            if at == entity {
                return true;
            }
            at = self.entities[at as usize].parent;
        }
        false
    }

    /// The nearest ancestors of the two entities, or themselves, that share a queue: find_matching_se(). Both must be
    /// of one pCPU: then they share the root's queue at least.
    pub(super) fn matching(&self, one: u32, other: u32) -> (u32, u32) {
        let (mut one, mut other) = (one, other);
        while self.entities[one as usize].depth > self.entities[other as usize].depth {
            one = self.entities[one as usize].parent;
        }
        while self.entities[other as usize].depth > self.entities[one as usize].depth {
            other = self.entities[other as usize].parent;
        }
        while self.entities[one as usize].queue != self.entities[other as usize].queue {
            one = self.entities[one as usize].parent;
            other = self.entities[other as usize].parent;
        }
        (one, other)
    }
}
