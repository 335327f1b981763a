// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buddies, yields, directed yields, and the two remedies that begin there.

use super::Fair;
use super::entity::NONE;
use super::rules::Debooster;

/// The queues that the lag credit reckons as full depth; see [`Fair::credit_lag`].
const LAG_CREDIT_DEPTH: u64 = 8;

/// The least time between two reschedules that the lag credit forces on a pCPU, ns (cover letter of its third version).
const LAG_CREDIT_FORCE_NS: u64 = 6_000_000;

impl Fair {
    /// To be picked next at every level, if the version's pick honours it: set_next_buddy().
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

    /// It is nobody's buddy any more, nor are the groups around it that are for its sake: clear_buddies().
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

    /// The current task lets others run: yield_task_fair().
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

    /// The yielder gives way to the target: yield_to_task_fair(), with what the options add. Both are queued; the yielder
    /// is current.
    pub(super) fn yield_current_to(&mut self, now_ns: u64, yielder: u32, target: u32) {
        let cpu_of = |entity: u32| self.queues[self.entities[entity as usize].queue as usize].cpu;
        let shared = cpu_of(yielder) == cpu_of(target);
        self.set_next_buddy(target);
        self.yield_current(now_ns, yielder);
        if !shared {
            return;
        }
        match self.options.debooster {
            Debooster::Off => {}
            Debooster::Paper => {
                if self.entities[yielder as usize].queue == self.entities[target as usize].queue {
                    self.deboost(now_ns, yielder, target);
                }
            }
            Debooster::Ancestor => {
                let (yielder, target) = self.matching(yielder, target);
                self.deboost(now_ns, yielder, target);
            }
        }
        if self.options.lag_credit {
            self.credit_lag(now_ns, yielder, target);
        }
    }

    /// Ruling 30: if the target's virtual runtime is more than a threshold above the yielder's, the yielder's becomes the
    /// target's minus the threshold. The threshold is the wake-up granularity, which also the pick allows a buddy. Both
    /// share a queue, where the yielder is the current entity, so that no key changes under the sorted array.
    fn deboost(&mut self, now_ns: u64, yielder: u32, target: u32) {
        if yielder == target {
            return;
        }
        self.update_current(now_ns, self.entities[yielder as usize].queue);
        let target_vruntime = self.entities[target as usize].vruntime;
        let who = &mut self.entities[yielder as usize];
        let threshold = who.load.to_virtual(self.tunables.wakeup_granularity_ns);
        who.vruntime = deboosted(who.vruntime, target_vruntime, threshold);
        if self.eevdf {
            self.renew_deadline(yielder);
        }
    }

    /// The lag credit that was proposed upstream (Wanpeng Li, "Semantics-aware directed yield for oversubscribed KVM",
    /// v3, 12 June 2026, <https://lore.kernel.org/all/20260612013355.59231-1-kernellwp@gmail.com/>), as its cover letter
    /// has it: every entity of the target's chain that is not eligible gets a positive lag, by the depth of its queue and
    /// within the bound on lag; then slice protection of the yielder's chain is cancelled, at most once in 6 ms per pCPU.
    /// The letter does not say the margin: here a slice times the number of entities over eight, at most a slice.
    fn credit_lag(&mut self, now_ns: u64, yielder: u32, target: u32) {
        let mut at = target;
        while at != NONE {
            if !self.eligible(at) {
                self.credit_entity(at);
            }
            at = self.entities[at as usize].parent;
        }
        let cpu = self.queues[self.entities[yielder as usize].queue as usize].cpu;
        let state = &mut self.cpus[cpu.index()];
        if now_ns < state.forced_ns + LAG_CREDIT_FORCE_NS && state.forced_ns > 0 {
            return;
        }
        state.forced_ns = now_ns.max(1);
        let mut at = yielder;
        while at != NONE {
            let who = &mut self.entities[at as usize];
            who.protected_until = who.protected_until.min(who.vruntime);
            at = who.parent;
        }
    }

    fn credit_entity(&mut self, entity: u32) {
        let queue = self.entities[entity as usize].queue;
        let depth = u64::from(self.queues[queue as usize].queued).min(LAG_CREDIT_DEPTH);
        let margin_ns = self.tunables.base_slice_ns * depth / LAG_CREDIT_DEPTH;
        let limit = self.lag_limit(entity);
        let lag = self.entities[entity as usize]
            .load
            .to_virtual(margin_ns)
            .min(limit);
        if self.queues[queue as usize].current == entity {
            // The group that holds both: it is off the sorted array and is moved in place.
            let mean = self.mean_vruntime(queue);
            let who = &mut self.entities[entity as usize];
            let shift = mean - lag - who.vruntime;
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
        who.lag = lag;
        self.queues[queue as usize].queued -= 1;
        self.eevdf_place(entity, false);
        self.queues[queue as usize].queued += 1;
        self.entities[entity as usize].on_queue = true;
        self.insert(entity);
    }
}

/// The debooster's rule, in virtual time: the yielder's new virtual runtime. It never goes down.
fn deboosted(yielder: i64, target: i64, threshold: i64) -> i64 {
    yielder.max(target - threshold)
}
