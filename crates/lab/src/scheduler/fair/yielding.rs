// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buddies, yields, directed yields, and the two remedies that build on them.

use super::Fair;
use super::entity::NONE;
use unspin_policy::{Deboost, DeboostPair, LAG_MARGIN_NS, LagLevel, lag_credit_forces};

impl Fair {
    /// Makes it the next buddy at every level, if the version's pick honours buddies: set_next_buddy().
    pub(super) fn set_next_buddy(&mut self, entity: u32) {
        let mut at = entity;
        while at != NONE && self.entities[at as usize].on_queue {
            let who = &self.entities[at as usize];
            self.queues[who.queue as usize].next = at;
            at = who.parent;
        }
    }

    /// set_last_buddy().
    pub(super) fn set_last_buddy(&mut self, entity: u32) {
        let mut at = entity;
        while at != NONE && self.entities[at as usize].on_queue {
            let who = &self.entities[at as usize];
            self.queues[who.queue as usize].last = at;
            at = who.parent;
        }
    }

    /// set_skip_buddy().
    fn set_skip_buddy(&mut self, entity: u32) {
        let mut at = entity;
        while at != NONE {
            let who = &self.entities[at as usize];
            self.queues[who.queue as usize].skip = at;
            at = who.parent;
        }
    }

    /// Ends its role as a buddy, and that of the groups around it: clear_buddies().
    pub(super) fn clear_buddies(&mut self, entity: u32) {
        let queue = self.entities[entity as usize].queue as usize;
        if self.queues[queue].last == entity {
            self.clear_up(entity, |queue| &mut queue.last);
        }
        if self.queues[queue].next == entity {
            self.clear_up(entity, |queue| &mut queue.next);
        }
        if self.queues[queue].skip == entity {
            self.clear_up(entity, |queue| &mut queue.skip);
        }
    }

    fn clear_up(&mut self, entity: u32, buddy: fn(&mut super::entity::Queue) -> &mut u32) {
        let mut at = entity;
        while at != NONE {
            let who = &self.entities[at as usize];
            let buddy = buddy(&mut self.queues[who.queue as usize]);
            if *buddy != at {
                break;
            }
            *buddy = NONE;
            at = who.parent;
        }
    }

    /// The current task yields: yield_task_fair().
    pub(super) fn yield_current(&mut self, now_ns: u64, entity: u32) {
        let queue = self.entities[entity as usize].queue;
        let cpu = self.queues[queue as usize].cpu;
        if self.cpus[cpu.index()].queued == 1 {
            return;
        }
        self.clear_buddies(entity);
        self.update_current(now_ns, queue);
        if !self.eevdf {
            self.set_skip_buddy(entity);
        } else if !self.version.yield_forfeits() {
            let slice_ns = self.tunables.base_slice_ns;
            let who = &mut self.entities[entity as usize];
            who.deadline += who.load.to_virtual(slice_ns);
        } else if self.eligible(entity) {
            let who = &mut self.entities[entity as usize];
            who.vruntime = who.deadline;
            self.renew_deadline(entity);
        }
    }

    /// The yielder gives way to the target: yield_to_task_fair(), with the options. Both are queued; the yielder is
    /// current.
    pub(super) fn yield_current_to(&mut self, now_ns: u64, yielder: u32, target: u32) {
        let cpu_of = |entity: u32| self.queues[self.entities[entity as usize].queue as usize].cpu;
        let shared = cpu_of(yielder) == cpu_of(target);
        self.set_next_buddy(target);
        if shared {
            self.deboost(now_ns, yielder, target);
        }
        self.yield_current(now_ns, yielder);
        if shared && self.options.lag_credit {
            self.credit_lag(now_ns, yielder, target);
        }
    }

    /// Ruling 30, `policy/model/deboost.h`. The threshold is the wake-up granularity, up to which the pick also follows
    /// a buddy. Both are of one pCPU. Only the virtual time of a queue's current entity is raised, so no key in the
    /// sorted array changes.
    fn deboost(&mut self, now_ns: u64, yielder: u32, target: u32) {
        let same_parent =
            self.entities[yielder as usize].queue == self.entities[target as usize].queue;
        let (yielder, target) = match self.options.debooster {
            Deboost::Off => return,
            Deboost::Paper => (yielder, target),
            Deboost::Ancestor => self.matching(yielder, target),
        };
        self.update_current(now_ns, self.entities[yielder as usize].queue);
        let who = &self.entities[yielder as usize];
        let pair = DeboostPair {
            yielder_vtime: who.vruntime as u64,
            target_vtime: self.entities[target as usize].vruntime as u64,
            same_cpu: true,
            same_parent,
        };
        let threshold = who.load.to_virtual(self.tunables.wakeup_granularity_ns) as u64;
        let raised = self.options.debooster.yielder_vtime(pair, threshold) as i64;
        self.entities[yielder as usize].vruntime = raised;
        if self.eevdf {
            self.renew_deadline(yielder);
        }
    }

    /// The lag credit that was proposed upstream, `policy/model/lag_credit.h`: every entity of the target's chain that
    /// is not eligible gets a positive lag; then the yielder's slice protection is cancelled, at most at a limited rate
    /// per pCPU.
    fn credit_lag(&mut self, now_ns: u64, yielder: u32, target: u32) {
        let mut at = target;
        while at != NONE {
            self.credit_entity(at);
            at = self.entities[at as usize].parent;
        }
        let cpu = self.queues[self.entities[yielder as usize].queue as usize].cpu;
        let state = &mut self.cpus[cpu.index()];
        if !lag_credit_forces(now_ns, state.forced_ns) {
            return;
        }
        state.forced_ns = Some(now_ns);
        let mut at = yielder;
        while at != NONE {
            let who = &mut self.entities[at as usize];
            who.protected_until = who.protected_until.min(who.vruntime);
            at = who.parent;
        }
    }

    fn credit_entity(&mut self, entity: u32) {
        let queue = self.entities[entity as usize].queue;
        let mean = self.mean_vruntime(queue);
        let who = &self.entities[entity as usize];
        let level = LagLevel {
            average_vtime: mean as u64,
            target_vtime: who.vruntime as u64,
            limit_vtime: self.lag_limit(entity) as u64,
            margin_vtime: who.load.to_virtual(LAG_MARGIN_NS) as u64,
            runnable: self.cpus[self.queues[queue as usize].cpu.index()].runnable,
        };
        let credited = level.credited_vtime() as i64;
        let shift = credited - who.vruntime;
        if shift == 0 {
            return;
        }
        if self.queues[queue as usize].current == entity {
            // The group that holds both: it is not in the sorted array and is moved in place.
            let who = &mut self.entities[entity as usize];
            who.vruntime += shift;
            who.deadline += shift;
            who.protected_until += shift;
            return;
        }
        self.remove(entity);
        let who = &mut self.entities[entity as usize];
        who.on_queue = false;
        who.deadline -= who.vruntime;
        who.relative_deadline = true;
        who.lag = mean - credited;
        self.queues[queue as usize].queued -= 1;
        self.eevdf_place(entity, false);
        self.queues[queue as usize].queued += 1;
        self.entities[entity as usize].on_queue = true;
        self.insert(entity);
    }
}
