// SPDX-License-Identifier: MIT OR Apache-2.0
//! A group's weight on each pCPU: its shares, divided in proportion to its load there. calc_cfs_shares(),
//! calc_group_shares() in kernel/sched/fair.c.
//!
//! The kernel averages loads with a half-life of 32 ms (kernel/sched/pelt.c); so does this, by group and pCPU. Left
//! out: averages of single tasks. The load that a task leaves on a queue when it sleeps decays there; a task that is
//! moved while runnable takes its weight along, at most what the old queue's average holds. Linux 3.5 averaged over 5
//! ms windows instead.

use super::Fair;
use super::rules::Load;

/// A period of the average, as a power of two of nanoseconds: 1.05 ms (kernel/sched/pelt.c).
const PERIOD_SHIFT: u32 = 20;

/// Number of periods in which a load decays to one half.
const HALF_LIFE: u64 = 32;

/// 2^32 / 2^(n/32): `runnable_avg_yN_inv` of kernel/sched/sched-pelt.h.
const FADES: [u32; HALF_LIFE as usize] = [
    0xffff_ffff,
    0xfa83_b2da,
    0xf525_7d14,
    0xefe4_b99a,
    0xeac0_c6e6,
    0xe5b9_06e6,
    0xe0cc_deeb,
    0xdbfb_b796,
    0xd744_fcc9,
    0xd2a8_1d91,
    0xce24_8c14,
    0xc9b9_bd85,
    0xc567_2a10,
    0xc12c_4cc9,
    0xbd08_a39e,
    0xb8fb_af46,
    0xb504_f333,
    0xb123_f581,
    0xad58_3ee9,
    0xa9a1_5ab4,
    0xa5fe_d6a9,
    0xa270_4302,
    0x9ef5_325f,
    0x9b8d_39b9,
    0x9837_f050,
    0x94f4_efa8,
    0x91c3_d373,
    0x8ea4_398a,
    0x8b95_c1e3,
    0x8898_0e80,
    0x85aa_c367,
    0x82cd_8698,
];

/// The least weight of a group on a pCPU: `MIN_SHARES` (kernel/sched/sched.h).
const LEAST_SHARES: u64 = 2;

/// What is left of a load after that many periods.
fn fade(load: u64, periods: u64) -> u64 {
    let halves = periods / HALF_LIFE;
    if halves >= 64 {
        return 0;
    }
    let factor = FADES[(periods % HALF_LIFE) as usize];
    ((u128::from(load >> halves) * u128::from(factor)) >> 32) as u64
}

impl Fair {
    /// Updates the average of a queue's load; called before the load changes.
    pub(super) fn average_load(&mut self, now_ns: u64, queue: u32) {
        let of = &mut self.queues[queue as usize];
        if of.group == 0 {
            return;
        }
        let periods = (now_ns >> PERIOD_SHIFT).saturating_sub(of.averaged_ns >> PERIOD_SHIFT);
        if periods == 0 {
            return;
        }
        of.averaged_ns = now_ns;
        let old = of.load_average;
        of.load_average = if old > of.load {
            of.load + fade(old - of.load, periods)
        } else {
            of.load - fade(of.load - old, periods)
        };
        let total = &mut self.groups[of.group as usize].load_total;
        *total = *total - old + of.load_average;
    }

    /// Adds a load to an average at once: for a new task, or one that is moved while runnable.
    pub(super) fn attach_load(&mut self, queue: u32, weight: u64) {
        let of = &mut self.queues[queue as usize];
        if of.group != 0 {
            of.load_average += weight;
            self.groups[of.group as usize].load_total += weight;
        }
    }

    /// The reverse: removes at most what is there. Returns what was removed.
    pub(super) fn detach_load(&mut self, queue: u32, weight: u64) -> u64 {
        let of = &mut self.queues[queue as usize];
        if of.group == 0 {
            return weight;
        }
        let leaves = weight.min(of.load_average);
        of.load_average -= leaves;
        self.groups[of.group as usize].load_total -= leaves;
        leaves
    }

    /// Sets the weight of a group's entity: update_cfs_group(). Does nothing for tasks and empty groups.
    pub(super) fn update_share(&mut self, now_ns: u64, entity: u32) {
        let own = self.entities[entity as usize].own_queue;
        if self.entities[entity as usize].is_task() || self.queues[own as usize].load == 0 {
            return;
        }
        self.average_load(now_ns, own);
        let of = &self.queues[own as usize];
        let group = &self.groups[of.group as usize];
        let load = if self.version.shares_by_averaged_load() {
            of.load.max(of.load_average)
        } else {
            of.load
        };
        let total = group.load_total - of.load_average + load;
        let product = u128::from(group.weight) * u128::from(load);
        let shares = match u64::try_from(product) {
            Ok(product) => product / total,
            Err(_) => (product / u128::from(total)) as u64,
        };
        let shares = shares.clamp(LEAST_SHARES.min(group.weight), group.weight);
        if shares != self.entities[entity as usize].load.weight {
            self.reweigh(now_ns, entity, shares);
        }
    }

    /// reweight_entity().
    fn reweigh(&mut self, now_ns: u64, entity: u32, weight: u64) {
        let (queue, on_queue) = {
            let who = &self.entities[entity as usize];
            (who.queue, who.on_queue)
        };
        let is_current = self.queues[queue as usize].current == entity;
        if on_queue {
            if is_current || self.version.reweight_moves() {
                self.update_current(now_ns, queue);
            }
            self.average_load(now_ns, queue);
            let of = &mut self.queues[queue as usize];
            of.load = of.load - self.entities[entity as usize].load.weight + weight;
        }
        if self.eevdf {
            let mean = on_queue.then(|| self.mean_vruntime(queue));
            if on_queue && !is_current {
                self.remove(entity);
            }
            self.eevdf_reweigh(entity, mean, weight);
        }
        self.entities[entity as usize].load = Load::new(weight, self.version.weight_shift());
        if self.eevdf && on_queue && !is_current {
            self.insert(entity);
        }
    }

    /// Lets the average of one more of a group's queues decay, a different one at each call: the load of blocked tasks
    /// on pCPUs where nothing happens (update_blocked_averages()).
    pub(super) fn fade_one(&mut self, now_ns: u64, group: u32) {
        let of = &mut self.groups[group as usize];
        if of.queues.is_empty() {
            return;
        }
        of.fades_next = (of.fades_next + 1) % of.queues.len();
        let queue = of.queues[of.fades_next];
        self.average_load(now_ns, queue);
    }
}
