// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves waiting tasks between pCPUs: newidle balancing, waking idle pCPUs to search, periodic balancing.
//!
//! A domain is the set of pCPUs that share a core, a cache, a socket or the machine. The busiest pCPU of a domain is
//! the one with most runnable tasks; its task that has waited longest is taken. Left out of load_balance(): loads
//! (tasks are counted instead), groups' sums and kinds (one pCPU is compared with one other), several tasks at once,
//! active balancing of running tasks, the limit of newidle balancing by its cost, buddies that count as cache-hot.

use super::queueing::{Joining, Leaving};
use super::rules::Version;
use super::{Fair, State};
use crate::ids::{Cpu, Task};
use crate::scheduler::{Allowed, HostScheduler};
use crate::topology::Distance;

/// The greatest number of domains of a pCPU.
pub(super) const DOMAINS: usize = 4;

const DISTANCES: [Distance; DOMAINS] = [
    Distance::Core,
    Distance::Cache,
    Distance::Socket,
    Distance::Machine,
];

/// `sd->cache_nice_tries`: number of failures after which cache-hot tasks are moved too (kernel/sched/topology.c, for a
/// cache).
const HOT_AFTER_FAILURES: u32 = 1;

impl Fair {
    /// A pCPU without a task searches for one, nearest first: newidle_balance(). True: it has one now.
    pub(super) fn balance_idle(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        if self.overloaded.is_empty() {
            return false;
        }
        let takes_hot = self.cpus[cpu.index()].kicked;
        for distance in DISTANCES {
            if let Some(busiest) = self.busiest(cpu, distance, 1) {
                if self
                    .take_one(
                        now_ns,
                        busiest,
                        cpu,
                        takes_hot || distance == Distance::Core,
                    )
                    .is_some()
                {
                    return true;
                }
            }
        }
        false
    }

    /// The pCPU of that domain with most runnable tasks, if it has more than `above`.
    fn busiest(&self, cpu: Cpu, distance: Distance, above: u32) -> Option<Cpu> {
        let domain = self.topology.around(cpu, distance);
        let runnable = |cpu: &Cpu| self.cpus[cpu.index()].runnable;
        let candidates = self.overloaded.within(domain);
        let candidates = candidates.filter(|other| *other != cpu && runnable(other) > above);
        candidates.max_by_key(|other| (runnable(other), std::cmp::Reverse(*other)))
    }

    /// Moves the task that has waited longest and may move: can_migrate_task().
    fn take_one(&mut self, now_ns: u64, from: Cpu, to: Cpu, takes_hot: bool) -> Option<Task> {
        let source = &self.cpus[from.index()];
        let may_go = |task: &&Task| {
            let state = &self.tasks[task.index()];
            let hot = state.ran_ns > 0 && now_ns - state.ran_ns < self.tunables.migration_cost_ns;
            source.lingering != state.entity
                && state.allowed.contains(to)
                && (takes_hot || !hot)
                && !self.sibling_on(**task, to)
        };
        let waited_longest = |task: &&Task| (self.tasks[task.index()].ran_ns, **task);
        let task = *source
            .waiting
            .iter()
            .filter(may_go)
            .min_by_key(waited_longest)?;
        self.migrate(now_ns, task, to);
        Some(task)
    }

    /// Moves a waiting task to another pCPU's queue: detach_task() and attach_task().
    fn migrate(&mut self, now_ns: u64, task: Task, to: Cpu) {
        debug_assert_eq!(self.tasks[task.index()].state, State::Waits);
        let entity = self.tasks[task.index()].entity;
        let weight = self.entities[entity as usize].load.weight;
        self.dequeue_entities(now_ns, entity, Leaving::Migrated);
        self.no_longer_waits(task);
        self.count_runnable(task, false);
        let old_queue = self.entities[entity as usize].queue;
        self.average_load(now_ns, old_queue);
        let moves = self.detach_load(old_queue, weight);
        self.stand_on(task, to);
        let queue = self.entities[entity as usize].queue;
        self.average_load(now_ns, queue);
        self.attach_load(queue, moves);
        self.enqueue_task(now_ns, entity, Joining::Migrated);
        self.count_runnable(task, true);
        self.wait_on(task);
    }

    /// At the tick of a busy pCPU: if a task waits here, an idle pCPU is woken to search (nohz_balancer_kick());
    /// domains that are due are balanced (rebalance_domains()).
    pub(super) fn balance_at_tick(&mut self, now_ns: u64, cpu: Cpu) {
        if self.cpus[cpu.index()].runnable > 1 {
            self.kick_idle(cpu);
        }
        let mut lower = (cpu, 1);
        for (level, distance) in DISTANCES.into_iter().enumerate() {
            let domain = self.topology.around(cpu, distance);
            if domain.1 == lower.1 {
                continue;
            }
            // One pCPU of each group below balances for all: should_we_balance().
            let balances = lower.0 == cpu;
            lower = domain;
            if !balances || now_ns < self.cpus[cpu.index()].balance_ns[level] {
                continue;
            }
            self.cpus[cpu.index()].balance_ns[level] = now_ns + self.interval_ns(domain.1);
            self.balance_domain(now_ns, cpu, distance);
        }
    }

    /// A millisecond for each pCPU of the domain (`sd->balance_interval`), times the busy factor, which Linux 5.10
    /// halved.
    fn interval_ns(&self, cpus: u32) -> u64 {
        let busy_factor = if self.version >= Version::Eevdf6_6 {
            16
        } else {
            32
        };
        u64::from(cpus) * busy_factor * 1_000_000
    }

    fn balance_domain(&mut self, now_ns: u64, cpu: Cpu, distance: Distance) {
        let mine = self.cpus[cpu.index()].runnable;
        let Some(busiest) = self.busiest(cpu, distance, mine + 1) else {
            self.cpus[cpu.index()].balance_failed = 0;
            return;
        };
        let takes_hot = distance == Distance::Core
            || self.cpus[cpu.index()].balance_failed > HOT_AFTER_FAILURES;
        if let Some(task) = self.take_one(now_ns, busiest, cpu, takes_hot) {
            self.cpus[cpu.index()].balance_failed = 0;
            self.wakeup_preempts(now_ns, cpu, task);
        } else {
            self.cpus[cpu.index()].balance_failed += 1;
        }
    }

    /// Makes the nearest idle pCPU that may run one of this pCPU's waiting tasks search for work.
    fn kick_idle(&mut self, cpu: Cpu) {
        if self.idle.is_empty() {
            return;
        }
        let source = &self.cpus[cpu.index()];
        let nearest = |cpus: &mut dyn Iterator<Item = Cpu>| {
            cpus.min_by_key(|other| (self.topology.distance(cpu, *other), *other))
        };
        let target = source.waiting.iter().find_map(|task| {
            let state = &self.tasks[task.index()];
            if source.lingering == state.entity {
                return None;
            }
            let free = |other: &Cpu| self.idle.contains(*other) && !self.sibling_on(*task, *other);
            match &state.allowed {
                Allowed::All => {
                    let everywhere = self.topology.around(cpu, Distance::Machine);
                    nearest(&mut self.idle.within(everywhere).filter(free))
                }
                Allowed::Only(cpus) => nearest(&mut cpus.iter().copied().filter(free)),
            }
        });
        if let Some(target) = target {
            self.cpus[target.index()].kicked = true;
            self.kicks.set(target, true);
        }
    }
}
