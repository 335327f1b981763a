// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pCPU on which a woken task waits: a simplified select_task_rq_fair(), described here in full.
//!
//! A new task goes to the pCPU with the fewest runnable tasks, the nearest to its waker. A woken one goes to the pCPU
//! it ran on (previous) or to its waker's: the waker's if that is idle and shares the cache and the previous one is not
//! idle, or if fewer tasks are runnable there (wake_affine()). If that pCPU is busy, the task goes to an idle one with
//! the same last-level cache: previous, a core that is all idle, any idle one (select_idle_sibling()). Left out:
//! wake_wide(), SIS_PROP and SIS_UTIL (the search covers the whole cache), recent_used_cpu, synchronous wake-ups,
//! energy.

use super::Fair;
use crate::ids::{Cpu, Task};
use crate::scheduler::Allowed;
use crate::topology::Distance;

impl Fair {
    fn is_idle(&self, cpu: Cpu) -> bool {
        self.idle.contains(cpu)
    }

    /// Balance scheduling: whether a sibling of that task is runnable on that pCPU.
    pub(super) fn sibling_on(&self, task: Task, cpu: Cpu) -> bool {
        match self.tasks[task.index()].family {
            Some(family) if self.options.balance => {
                self.families[family as usize * self.cpus.len() + cpu.index()] > 0
            }
            _ => false,
        }
    }

    pub(super) fn select(&self, task: Task, waker: Option<Cpu>) -> Cpu {
        let state = &self.tasks[task.index()];
        if self.entities[state.entity as usize].delayed {
            // It is still queued: ttwu_runnable() wakes it there.
            return state.cpu;
        }
        if let Allowed::Only(cpus) = &state.allowed {
            if cpus.len() == 1 {
                return cpus[0];
            }
        }
        let chosen = if state.started {
            self.select_idle_sibling(task, self.wake_affine(task, waker))
        } else {
            self.least_busy(task, waker.unwrap_or(state.cpu), false)
        };
        if self.sibling_on(task, chosen) {
            let free = self.least_busy(task, chosen, true);
            if !self.sibling_on(task, free) {
                return free;
            }
        }
        chosen
    }

    /// The allowed pCPU with the fewest runnable tasks, the nearest to `near`; if requested, pCPUs without a sibling first.
    fn least_busy(&self, task: Task, near: Cpu, apart: bool) -> Cpu {
        let rank = |cpu: Cpu| {
            let sibling = apart && self.sibling_on(task, cpu);
            (
                sibling,
                self.cpus[cpu.index()].runnable,
                self.topology.distance(near, cpu),
                cpu,
            )
        };
        let best = match &self.tasks[task.index()].allowed {
            Allowed::All => (0..self.topology.cpus())
                .map(Cpu)
                .min_by_key(|cpu| rank(*cpu)),
            Allowed::Only(cpus) => cpus.iter().copied().min_by_key(|cpu| rank(*cpu)),
        };
        best.unwrap_or(near)
    }

    fn wake_affine(&self, task: Task, waker: Option<Cpu>) -> Cpu {
        let state = &self.tasks[task.index()];
        let previous = state.cpu;
        let Some(waker) =
            waker.filter(|waker| *waker != previous && state.allowed.contains(*waker))
        else {
            return previous;
        };
        let shares_cache = self.topology.distance(waker, previous) <= Distance::Cache;
        if self.is_idle(waker) && shares_cache {
            return if self.is_idle(previous) {
                previous
            } else {
                waker
            };
        }
        if self.cpus[waker.index()].runnable < self.cpus[previous.index()].runnable {
            waker
        } else {
            previous
        }
    }

    fn select_idle_sibling(&self, task: Task, target: Cpu) -> Cpu {
        if self.is_idle(target) {
            return target;
        }
        let state = &self.tasks[task.index()];
        if self.is_idle(state.cpu) && self.topology.distance(state.cpu, target) <= Distance::Cache {
            return state.cpu;
        }
        let cache = self.topology.around(target, Distance::Cache);
        let idle = || {
            self.idle
                .within(cache)
                .filter(|cpu| state.allowed.contains(*cpu))
        };
        if self.topology.threads_per_core() > 1 {
            let core_idle = |cpu: &Cpu| {
                let (first, threads) = self.topology.around(*cpu, Distance::Core);
                (first.0..first.0 + threads).all(|thread| self.is_idle(Cpu(thread)))
            };
            if let Some(cpu) = idle().find(core_idle) {
                return cpu;
            }
        }
        // From the target on, wrapping around its cache: for_each_cpu_wrap() in select_idle_cpu().
        idle()
            .find(|cpu| *cpu > target)
            .or_else(|| idle().next())
            .unwrap_or(target)
    }
}
