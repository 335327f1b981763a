// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFS: smallest virtual runtime first. kernel/sched/fair.c of Linux 3.5, 3.19, 4.13 and 5.6, whose rules here are the same.

use super::Fair;
use super::entity::NONE;
use super::queueing::Joining;
use super::rules::NR_LATENCY;

impl Fair {
    /// `min_vruntime` follows the smallest virtual runtime and never goes back: update_min_vruntime().
    pub(super) fn advance_least_vruntime(&mut self, queue: u32) {
        let of_queue = &self.queues[queue as usize];
        let vruntime_of = |entity: u32| {
            let queued = entity != NONE && self.entities[entity as usize].on_queue;
            queued.then(|| self.entities[entity as usize].vruntime)
        };
        let least = match (vruntime_of(of_queue.current), vruntime_of(of_queue.first())) {
            (Some(current), Some(first)) => current.min(first),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        let of_queue = &mut self.queues[queue as usize];
        of_queue.base_vruntime = of_queue.base_vruntime.max(least);
    }

    /// The slice of an entity, ns: its weight's part of the period at each level. sched_slice(), __sched_period().
    pub(super) fn cfs_slice_ns(&self, entity: u32) -> u64 {
        let who = &self.entities[entity as usize];
        let queued = self.queues[who.queue as usize].queued + u32::from(!who.on_queue);
        let mut slice_ns = if queued > NR_LATENCY {
            self.tunables.least_granularity_ns * u64::from(queued)
        } else {
            self.tunables.latency_ns
        };
        let mut at = entity;
        while at != NONE {
            let who = &self.entities[at as usize];
            let mut load = self.queues[who.queue as usize].load;
            if !who.on_queue {
                load += who.load.weight;
            }
            let product = u128::from(slice_ns) * u128::from(who.load.weight);
            slice_ns = match u64::try_from(product) {
                Ok(product) => product / load,
                Err(_) => (product / u128::from(load)) as u64,
            };
            at = who.parent;
        }
        slice_ns
    }

    /// The virtual runtime of a joining entity: place_entity() with START_DEBIT and GENTLE_FAIR_SLEEPERS, and the
    /// renormalisation of enqueue_entity(): a migrating entity's virtual runtime is relative to its old queue's.
    pub(super) fn cfs_place(&mut self, entity: u32, joining: Joining) {
        let queue = self.entities[entity as usize].queue;
        let base = self.queues[queue as usize].base_vruntime;
        match joining {
            Joining::New => {
                let slice_ns = self.cfs_slice_ns(entity);
                let who = &mut self.entities[entity as usize];
                who.vruntime = base + who.load.to_virtual(slice_ns);
            }
            Joining::Wakeup => {
                let who = &mut self.entities[entity as usize];
                let credit = (self.tunables.latency_ns / 2) as i64;
                who.vruntime = who.vruntime.max(base - credit);
            }
            Joining::Migrated => self.entities[entity as usize].vruntime += base,
        }
    }

    /// Above 0: `woken` is ahead by more than its granularity; 0: by less; below 0: not at all. wakeup_preempt_entity().
    pub(super) fn preempts(&self, current: u32, woken: u32) -> i32 {
        let woken = &self.entities[woken as usize];
        let ahead = self.entities[current as usize].vruntime - woken.vruntime;
        if ahead <= 0 {
            return -1;
        }
        i32::from(ahead > woken.load.to_virtual(self.tunables.wakeup_granularity_ns))
    }

    /// The entity to run next of a queue, its current entity included: pick_next_entity().
    pub(super) fn cfs_pick(&mut self, queue: u32) -> u32 {
        let of = &self.queues[queue as usize];
        let current = if of.current != NONE && self.entities[of.current as usize].on_queue {
            of.current
        } else {
            NONE
        };
        let before = |one: u32, other: u32| {
            self.entities[one as usize].vruntime < self.entities[other as usize].vruntime
        };
        let first = of.first();
        let mut left = first;
        if left == NONE || (current != NONE && before(current, left)) {
            left = current;
        }
        let mut picked = left;
        if of.skip == left {
            let second = if left == current {
                first
            } else {
                let second = of.second();
                if second == NONE || (current != NONE && before(current, second)) {
                    current
                } else {
                    second
                }
            };
            if second != NONE && self.preempts(second, left) < 1 {
                picked = second;
            }
        }
        for buddy in [of.last, of.next] {
            if buddy != NONE && self.preempts(buddy, left) < 1 {
                picked = buddy;
            }
        }
        self.clear_buddies(picked);
        picked
    }

    /// At a tick, for the current entity of a queue with others: check_preempt_tick(). True: reschedule.
    pub(super) fn cfs_tick(&mut self, entity: u32) -> bool {
        let slice_ns = self.cfs_slice_ns(entity);
        let who = &self.entities[entity as usize];
        let ran_ns = who.sum_exec_ns - who.picked_exec_ns;
        if ran_ns > slice_ns {
            // The buddies are cleared, so that it is not picked again as one.
            self.clear_buddies(entity);
            return true;
        }
        if ran_ns < self.tunables.least_granularity_ns {
            return false;
        }
        let first = self.queues[who.queue as usize].first();
        first != NONE && who.vruntime - self.entities[first as usize].vruntime > slice_ns as i64
    }

    /// Whether a woken task preempts the current one; sets the buddies: check_preempt_wakeup() with WAKEUP_PREEMPTION
    /// and LAST_BUDDY on, NEXT_BUDDY off.
    pub(super) fn cfs_wakeup_preempts(&mut self, now_ns: u64, current: u32, woken: u32) -> bool {
        let crowded =
            self.queues[self.entities[current as usize].queue as usize].queued >= NR_LATENCY;
        let (current, woken) = self.matching(current, woken);
        self.update_current(now_ns, self.entities[current as usize].queue);
        if self.preempts(current, woken) < 1 {
            return false;
        }
        self.set_next_buddy(woken);
        if crowded && self.entities[current as usize].is_task() {
            self.set_last_buddy(current);
        }
        true
    }
}
