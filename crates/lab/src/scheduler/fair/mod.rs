// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's fair class: CFS of Linux 3.5 to 5.6, EEVDF of 6.6 to 7.2, after kernel/sched/fair.c of those versions.
//!
//! Left out, besides what the files below name: bandwidth limits, SCHED_BATCH and SCHED_IDLE, autogroups, real-time tasks
//! and interrupts that take capacity, NUMA balancing, energy, asymmetric capacity and core scheduling. Lazy preemption is
//! reported as immediate preemption: the world decides how soon a pCPU follows.

mod balance;
mod cfs;
mod eevdf;
mod entity;
mod host;
mod queueing;
pub mod rules;
mod select;
mod shares;
#[cfg(test)]
mod tests;
mod yielding;

use self::entity::{Entity, NONE, Queue};
use self::queueing::Leaving;
use self::rules::{Load, Options, Tunables, Version};
use super::Allowed;
use super::cpu_set::CpuSet;
use crate::ids::{Cpu, Task};
use crate::topology::Topology;

/// A task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It sleeps; its entity may still be queued (delayed).
    Sleeps,
    /// It waits in a queue.
    Waits,
    /// It is the current one of its pCPU.
    Runs,
}

#[derive(Debug)]
struct TaskState {
    entity: u32,
    group: u32,
    allowed: Allowed,
    family: Option<u32>,
    /// The pCPU where it is, or was last.
    cpu: Cpu,
    state: State,
    /// When it last stopped running, ns.
    ran_ns: u64,
    /// It has been enqueued before.
    started: bool,
    /// It was enqueued for the first time, and has not slept since.
    new: bool,
}

#[derive(Debug)]
struct GroupState {
    parent: u32,
    weight: u64,
    /// Sum of its queues' averages.
    load_total: u64,
    /// Its queues; created on a pCPU with the group's first task there.
    queues: Vec<u32>,
    fades_next: usize,
}

#[derive(Debug)]
struct CpuState {
    current: Option<Task>,
    /// The task that has stopped running but is still the current entity of its queues, until the next pick; [`NONE`]:
    /// none.
    lingering: u32,
    /// need_resched.
    reschedule: bool,
    /// Number of tasks that wait or run here.
    runnable: u32,
    /// The kernel's `nr_running`, which includes tasks that sleep in the queue.
    queued: u32,
    /// The tasks that wait here, and the lingering one; unordered.
    waiting: Vec<Task>,
    /// When each domain is balanced next, nearest first, ns.
    balance_ns: [u64; balance::DOMAINS],
    /// How often in a row balancing found a task but could not move any.
    balance_failed: u32,
    /// Another pCPU has requested that it search for work.
    kicked: bool,
    /// When a lag credit last forced a reschedule, ns.
    forced_ns: Option<u64>,
}

/// A scheduler of the kernel's fair class.
#[derive(Debug)]
pub struct Fair {
    version: Version,
    eevdf: bool,
    options: Options,
    tunables: Tunables,
    topology: Topology,
    entities: Vec<Entity>,
    /// The root's first, by pCPU.
    queues: Vec<Queue>,
    tasks: Vec<TaskState>,
    groups: Vec<GroupState>,
    cpus: Vec<CpuState>,
    /// By group and pCPU, without the root: the group's entity there.
    group_entities: Vec<u32>,
    idle: CpuSet,
    /// pCPUs with a waiting task.
    overloaded: CpuSet,
    /// By family and pCPU: number of its runnable tasks there. Maintained for balance scheduling only.
    families: Vec<u32>,
    kicks: CpuSet,
}

impl Fair {
    /// This version with these options on this machine, with a tick every `tick_ns`. The kernel's tunables are those of
    /// [`Tunables::of`].
    pub fn new(version: Version, options: Options, topology: Topology, tick_ns: u64) -> Fair {
        let cpus = topology.cpus();
        let cpu_state = |_| CpuState {
            current: None,
            lingering: NONE,
            reschedule: false,
            runnable: 0,
            queued: 0,
            waiting: Vec::new(),
            balance_ns: [0; balance::DOMAINS],
            balance_failed: 0,
            kicked: false,
            forced_ns: None,
        };
        Fair {
            version,
            eevdf: version.is_eevdf(),
            options,
            tunables: Tunables::of(version, cpus, tick_ns),
            topology,
            entities: Vec::new(),
            queues: (0..cpus).map(|cpu| Queue::new(Cpu(cpu), 0)).collect(),
            tasks: Vec::new(),
            groups: vec![GroupState {
                parent: 0,
                weight: 0,
                load_total: 0,
                queues: Vec::new(),
                fades_next: 0,
            }],
            cpus: (0..cpus).map(cpu_state).collect(),
            group_entities: Vec::new(),
            idle: CpuSet::full(cpus),
            overloaded: CpuSet::empty(cpus),
            families: Vec::new(),
            kicks: CpuSet::empty(cpus),
        }
    }

    /// Its tunables.
    pub fn tunables(&self) -> Tunables {
        self.tunables
    }

    /// The queue of a group on a pCPU and the entity that represents it ([`NONE`] for the root); created at first use.
    fn queue_and_entity(&mut self, group: u32, cpu: Cpu) -> (u32, u32) {
        if group == 0 {
            return (cpu.0, NONE);
        }
        let slot = (group as usize - 1) * self.cpus.len() + cpu.index();
        let known = self.group_entities[slot];
        if known != NONE {
            return (self.entities[known as usize].own_queue, known);
        }
        let (parent_queue, parent) = self.queue_and_entity(self.groups[group as usize].parent, cpu);
        let queue = self.queues.len() as u32;
        self.queues.push(Queue::new(cpu, group));
        self.groups[group as usize].queues.push(queue);
        let mut entity = Entity::new(Load::new(
            self.groups[group as usize].weight,
            self.version.weight_shift(),
        ));
        entity.own_queue = queue;
        entity.queue = parent_queue;
        entity.parent = parent;
        entity.depth = if parent == NONE {
            0
        } else {
            self.entities[parent as usize].depth + 1
        };
        let id = self.entities.len() as u32;
        self.entities.push(entity);
        self.group_entities[slot] = id;
        (queue, id)
    }

    /// Assigns a task that is on no queue to that pCPU's.
    fn stand_on(&mut self, task: Task, cpu: Cpu) {
        let (queue, parent) = self.queue_and_entity(self.tasks[task.index()].group, cpu);
        let depth = if parent == NONE {
            0
        } else {
            self.entities[parent as usize].depth + 1
        };
        let entity = &mut self.entities[self.tasks[task.index()].entity as usize];
        entity.queue = queue;
        entity.parent = parent;
        entity.depth = depth;
        self.tasks[task.index()].cpu = cpu;
    }

    /// Counts the task as runnable on its pCPU, or no longer.
    fn count_runnable(&mut self, task: Task, joins: bool) {
        let cpu = self.tasks[task.index()].cpu;
        let state = &mut self.cpus[cpu.index()];
        state.runnable = if joins {
            state.runnable + 1
        } else {
            state.runnable - 1
        };
        let runnable = state.runnable;
        self.idle.set(cpu, runnable == 0);
        self.overloaded.set(cpu, runnable > 1);
        if let (true, Some(family)) = (self.options.balance, self.tasks[task.index()].family) {
            let count = &mut self.families[family as usize * self.cpus.len() + cpu.index()];
            *count = if joins { *count + 1 } else { *count - 1 };
        }
    }

    fn wait_on(&mut self, task: Task) {
        self.tasks[task.index()].state = State::Waits;
        let cpu = self.tasks[task.index()].cpu;
        self.cpus[cpu.index()].waiting.push(task);
    }

    fn no_longer_waits(&mut self, task: Task) {
        let waiting = &mut self.cpus[self.tasks[task.index()].cpu.index()].waiting;
        let position = waiting
            .iter()
            .position(|other| *other == task)
            .expect("a waiting task is listed");
        waiting.swap_remove(position);
    }

    /// Dequeues an entity that slept in its queue until it was picked.
    fn finish_delayed(&mut self, now_ns: u64, entity: u32) {
        self.dequeue_entities(now_ns, entity, Leaving::Delayed);
    }

    /// The task to run next of a pCPU's queues; delayed entities that are picked are dequeued: pick_task_fair().
    /// [`NONE`]: none.
    fn pick_entity(&mut self, now_ns: u64, cpu: Cpu) -> u32 {
        let mut queue = cpu.0;
        while self.queues[cpu.index()].queued > 0 {
            self.update_current(now_ns, queue);
            let picked = if self.eevdf {
                self.eevdf_pick(queue)
            } else {
                self.cfs_pick(queue)
            };
            let who = &self.entities[picked as usize];
            if who.delayed {
                self.finish_delayed(now_ns, picked);
                queue = cpu.0;
            } else if who.is_task() {
                return picked;
            } else {
                queue = who.own_queue;
            }
        }
        NONE
    }

    /// `next` and the groups around it become current instead of the lingering task; groups that hold both are left as
    /// they are.
    fn switch_to(&mut self, now_ns: u64, cpu: Cpu, next: u32) {
        let lingering = std::mem::replace(&mut self.cpus[cpu.index()].lingering, NONE);
        self.put_down_to(now_ns, lingering, next);
        let mut at = next;
        while at != NONE {
            let (queue, parent) = {
                let who = &self.entities[at as usize];
                (who.queue, who.parent)
            };
            if self.queues[queue as usize].current == at {
                break;
            }
            self.set_current(now_ns, at);
            at = parent;
        }
    }

    /// Entities of the lingering task that are off their queue no longer linger: they may be enqueued elsewhere before
    /// the next pick.
    fn forget_unqueued(&mut self, cpu: Cpu) {
        let mut at = self.cpus[cpu.index()].lingering;
        while at != NONE && !self.entities[at as usize].on_queue {
            let (queue, parent) = {
                let who = &self.entities[at as usize];
                (who.queue, who.parent)
            };
            self.queues[queue as usize].current = NONE;
            at = parent;
        }
        self.cpus[cpu.index()].lingering = at;
    }

    fn current_entity(&self, cpu: Cpu) -> u32 {
        self.cpus[cpu.index()]
            .current
            .map_or(NONE, |task| self.tasks[task.index()].entity)
    }
}
