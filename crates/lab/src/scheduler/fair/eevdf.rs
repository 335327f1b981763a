// SPDX-License-Identifier: MIT OR Apache-2.0
//! EEVDF: the earliest virtual deadline among the entities that have not run more than their share. kernel/sched/fair.c
//! of Linux 6.6, 6.12, 6.19 and 7.2; for a rule that not all of them have, [`super::rules::Version`] gives the first version.
//!
//! Left out: slices of their own (sched_setattr), hence PREEMPT_SHORT and the shortest slice of a queue have no effect;
//! NEXT_BUDDY, which is off in all releases. A change of weight moves virtual times as in 7.2 for versions from 6.12
//! on.

use super::Fair;
use super::entity::NONE;
use super::rules::Version;

/// Division that rounds down; fast if both numbers fit 64 bits.
fn floor_divide(sum: i128, weight: i64) -> i64 {
    match i64::try_from(sum) {
        Ok(sum) => sum.div_euclid(weight),
        Err(_) => sum.div_euclid(i128::from(weight)) as i64,
    }
}

impl Fair {
    /// The weight that counts in averages: avg_vruntime_weight(), at least 2.
    pub(super) fn average_weight(&self, entity: u32) -> i64 {
        let weight = self.entities[entity as usize].load.weight >> self.version.average_shift();
        weight.max(2) as i64
    }

    /// The current entity of a queue, if it is still queued.
    pub(super) fn queued_current(&self, queue: u32) -> u32 {
        let current = self.queues[queue as usize].current;
        if current != NONE && self.entities[current as usize].on_queue {
            current
        } else {
            NONE
        }
    }

    /// Sum of weight x (virtual runtime - base) and of weights, the current entity included.
    fn sums(&self, queue: u32) -> (i128, i64) {
        let of = &self.queues[queue as usize];
        let current = self.queued_current(queue);
        if current == NONE {
            return (of.weighted_sum, of.weight_sum);
        }
        let weight = self.average_weight(current);
        let key = self.entities[current as usize].vruntime - of.base_vruntime;
        (
            of.weighted_sum + i128::from(key) * i128::from(weight),
            of.weight_sum + weight,
        )
    }

    /// The weighted mean of virtual runtimes: avg_vruntime(). The base is moved there, so that sums stay small.
    pub(super) fn mean_vruntime(&mut self, queue: u32) -> i64 {
        let (sum, weight) = self.sums(queue);
        let of = &mut self.queues[queue as usize];
        if weight > 0 {
            let delta = floor_divide(sum, weight);
            of.weighted_sum -= i128::from(of.weight_sum) * i128::from(delta);
            of.base_vruntime += delta;
        }
        of.base_vruntime
    }

    /// Whether an entity is owed time: entity_eligible().
    pub(super) fn eligible(&self, entity: u32) -> bool {
        let who = &self.entities[entity as usize];
        let (sum, weight) = self.sums(who.queue);
        let key = who.vruntime - self.queues[who.queue as usize].base_vruntime;
        sum >= i128::from(key) * i128::from(weight)
    }

    /// How far an entity's lag may be from 0, in its virtual time: entity_lag().
    pub(super) fn lag_limit(&self, entity: u32) -> i64 {
        let limit_ns = self
            .version
            .lag_limit_ns(self.tunables.base_slice_ns, self.tunables.tick_ns);
        self.entities[entity as usize].load.to_virtual(limit_ns)
    }

    /// update_entity_lag(), with DELAY_ZERO: an entity that waited for its dequeue keeps no positive lag. Returns the
    /// mean.
    pub(super) fn update_lag(&mut self, entity: u32) -> i64 {
        let mean = self.mean_vruntime(self.entities[entity as usize].queue);
        let limit = self.lag_limit(entity);
        let keeps_lag = self.version.keeps_lag_while_delayed();
        let who = &mut self.entities[entity as usize];
        let mut lag = (mean - who.vruntime).clamp(-limit, limit);
        if who.delayed {
            if keeps_lag {
                lag = lag.max(who.lag);
            }
            lag = lag.min(0);
        }
        who.lag = lag;
        mean
    }

    /// The virtual runtime of a joining entity, with which its lag is unchanged after it has joined: place_entity()
    /// with PLACE_LAG, PLACE_DEADLINE_INITIAL and PLACE_REL_DEADLINE.
    pub(super) fn eevdf_place(&mut self, entity: u32, new: bool) {
        let queue = self.entities[entity as usize].queue;
        let mean = self.mean_vruntime(queue);
        let mut lag = self.entities[entity as usize].lag;
        if self.queues[queue as usize].queued > 0 && lag != 0 {
            let (_, load) = self.sums(queue);
            let all = load + self.average_weight(entity);
            lag = (i128::from(lag) * i128::from(all) / i128::from(load.max(1))) as i64;
        } else {
            lag = 0;
        }
        let slice_ns = self.tunables.base_slice_ns;
        let who = &mut self.entities[entity as usize];
        who.vruntime = mean - lag;
        if who.relative_deadline {
            who.deadline += who.vruntime;
            who.relative_deadline = false;
            return;
        }
        let slice = who.load.to_virtual(slice_ns);
        who.deadline = who.vruntime + if new { slice / 2 } else { slice };
    }

    /// Sets a new deadline when the old one is reached: update_deadline(). True: it was reached.
    pub(super) fn renew_deadline(&mut self, entity: u32) -> bool {
        let slice_ns = self.tunables.base_slice_ns;
        let who = &mut self.entities[entity as usize];
        if who.vruntime < who.deadline {
            return false;
        }
        who.deadline = who.vruntime + who.load.to_virtual(slice_ns);
        true
    }

    /// The end of update_curr(): reschedule at the end of a slice, or of its protected part.
    pub(super) fn eevdf_slice_used(&mut self, queue: u32, current: u32) {
        let renewed = self.renew_deadline(current);
        if self.queues[queue as usize].queued == 1 {
            return;
        }
        let unprotected = self.version.ends_with_protection()
            && !self.protected(current)
            && (self.version.has_protected_until() || !self.eligible(current));
        if renewed || unprotected {
            let cpu = self.queues[queue as usize].cpu;
            self.cpus[cpu.index()].reschedule = true;
            self.clear_buddies(current);
        }
    }

    /// RUN_TO_PARITY: whether the current entity is protected from preemption by a wake-up.
    fn protected(&self, entity: u32) -> bool {
        let who = &self.entities[entity as usize];
        if self.version.has_protected_until() {
            who.vruntime < who.protected_until
        } else {
            who.protected_until == who.deadline
        }
    }

    /// The entity to run next of a queue, its current entity included: pick_eevdf(). It may be delayed.
    pub(super) fn eevdf_pick(&self, queue: u32) -> u32 {
        let of = &self.queues[queue as usize];
        let mut current = self.queued_current(queue);
        if of.queued == 1 {
            return if current != NONE { current } else { of.first() };
        }
        let (sum, weight) = self.sums(queue);
        let eligible = |entity: u32| {
            let key = self.entities[entity as usize].vruntime - of.base_vruntime;
            sum >= i128::from(key) * i128::from(weight)
        };
        if self.version.picks_next_buddy() && of.next != NONE && eligible(of.next) {
            return of.next;
        }
        if current != NONE && !eligible(current) {
            current = NONE;
        }
        if current != NONE && self.protected(current) {
            return current;
        }
        let best = of.iter().find(|entity| eligible(*entity)).unwrap_or(NONE);
        if best == NONE {
            // The mean is rounded down, so some entity is eligible; 6.6 falls back to the first too.
            return if current != NONE { current } else { of.first() };
        }
        let deadline_of = |entity: u32| self.entities[entity as usize].deadline;
        if current != NONE && deadline_of(current) < deadline_of(best) {
            current
        } else {
            best
        }
    }

    /// It slept in the queue and is woken: requeue_delayed_entity().
    pub(super) fn requeue_delayed(&mut self, now_ns: u64, entity: u32) {
        let queue = self.entities[entity as usize].queue;
        if self.version.keeps_lag_while_delayed() {
            self.update_current(now_ns, queue);
        }
        let mean = self.update_lag(entity);
        let who = &self.entities[entity as usize];
        let moves = if self.version.keeps_lag_while_delayed() {
            mean - who.lag != who.vruntime
        } else {
            mean > who.vruntime
        };
        if moves {
            let is_current = self.queues[queue as usize].current == entity;
            self.queues[queue as usize].queued -= 1;
            if !is_current {
                self.remove(entity);
            }
            self.eevdf_place(entity, false);
            if !is_current {
                self.insert(entity);
            }
            self.queues[queue as usize].queued += 1;
        }
        self.entities[entity as usize].delayed = false;
    }

    /// Whether a woken task preempts the current one: check_preempt_wakeup_fair(), wakeup_preempt_fair().
    pub(super) fn eevdf_wakeup_preempts(
        &mut self,
        now_ns: u64,
        current: u32,
        woken: u32,
        new: bool,
    ) -> bool {
        let (current, woken) = self.matching(current, woken);
        let queue = self.entities[current as usize].queue;
        self.update_current(now_ns, queue);
        if self.version.new_tasks_wait() && (new || self.entities[woken as usize].delayed) {
            return false;
        }
        loop {
            let picked = self.eevdf_pick(queue);
            if picked == woken {
                return true;
            }
            // Since 7.2 a delayed entity that would have been picked is dequeued first: pick_next_entity().
            let sleeper = self.entities[picked as usize].delayed;
            if !sleeper || !self.version.keeps_lag_while_delayed() {
                return false;
            }
            self.finish_delayed(now_ns, picked);
        }
    }

    /// A change of weight, for an entity that is not in the sorted part: reweight_entity(). `mean`: that of its queue
    /// before it was taken out; `None`: it is not queued. In 6.6 only the distance to the deadline is scaled, later
    /// versions scale the lag too, and 7.2 also the protected part of a slice.
    pub(super) fn eevdf_reweigh(&mut self, entity: u32, mean: Option<i64>, new_weight: u64) {
        let old_weight = self.entities[entity as usize].load.weight;
        let scale = |virtual_ns: i64| {
            (i128::from(virtual_ns) * i128::from(old_weight) / i128::from(new_weight)) as i64
        };
        let limit = self.lag_limit(entity);
        let version = self.version;
        let who = &mut self.entities[entity as usize];
        match mean {
            None => {
                who.lag = scale(who.lag);
                if who.relative_deadline {
                    who.deadline = scale(who.deadline);
                }
            }
            Some(mean) if version.reweight_moves() => {
                let protects = who.vruntime < who.protected_until;
                let lag = (mean - who.vruntime).clamp(-limit, limit);
                who.vruntime = mean - scale(lag);
                who.deadline = mean + scale(who.deadline - mean);
                if protects && version >= Version::Eevdf7_2 {
                    who.protected_until = mean + scale(who.protected_until - mean);
                }
            }
            Some(_) => who.deadline = who.vruntime + scale(who.deadline - who.vruntime),
        }
    }
}
