// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fair class as a host scheduler: which functions of the kernel each call represents.

use super::entity::{Entity, NONE};
use super::queueing::{Joining, Leaving};
use super::rules::Load;
use super::{Fair, GroupState, State, TaskState};
use crate::ids::{Cpu, Group, Task};
use crate::scheduler::{Allowed, Enqueue, HostScheduler, YieldTo};

impl HostScheduler for Fair {
    fn add_group(&mut self, parent: Group, weight: u32) -> Group {
        let group = Group(self.groups.len() as u32);
        self.groups.push(GroupState {
            parent: parent.0,
            weight: u64::from(weight.max(2)) << self.version.weight_shift(),
            load_total: 0,
            queues: Vec::new(),
            fades_next: 0,
        });
        self.group_entities
            .resize(group.index() * self.cpus.len(), NONE);
        group
    }

    fn add_task(
        &mut self,
        group: Group,
        weight: u32,
        allowed: Allowed,
        family: Option<u32>,
    ) -> Task {
        let task = Task(self.tasks.len() as u32);
        let shift = self.version.weight_shift();
        let mut entity = Entity::new(Load::new(u64::from(weight.max(2)) << shift, shift));
        entity.task = task.0;
        let id = self.entities.len() as u32;
        self.entities.push(entity);
        let cpu = match &allowed {
            Allowed::All => Cpu(0),
            Allowed::Only(cpus) => cpus[0],
        };
        if let (true, Some(family)) = (self.options.balance, family) {
            let needed = (family as usize + 1) * self.cpus.len();
            self.families.resize(needed.max(self.families.len()), 0);
        }
        let state = State::Sleeps;
        self.tasks.push(TaskState {
            entity: id,
            group: group.0,
            allowed,
            family,
            cpu,
            state,
            ran_ns: 0,
            started: false,
            new: false,
        });
        task
    }

    fn select_cpu(&mut self, _now_ns: u64, task: Task, waker: Option<Cpu>) -> Cpu {
        self.select(task, waker)
    }

    fn enqueue(&mut self, now_ns: u64, task: Task, cpu: Cpu, why: Enqueue) {
        let entity = self.tasks[task.index()].entity;
        let from = self.tasks[task.index()].cpu;
        let new = why == Enqueue::New || !self.tasks[task.index()].started;
        self.tasks[task.index()].new = new;
        self.tasks[task.index()].started = true;
        if self.entities[entity as usize].delayed {
            if from == cpu {
                self.requeue_delayed(now_ns, entity);
                self.count_runnable(task, true);
                self.wait_on(task);
                return;
            }
            self.finish_delayed(now_ns, entity);
            self.forget_unqueued(from);
        }
        let old_queue = self.entities[entity as usize].queue;
        self.stand_on(task, cpu);
        let queue = self.entities[entity as usize].queue;
        let joining = if new {
            self.average_load(now_ns, queue);
            self.attach_load(queue, self.entities[entity as usize].load.weight);
            Joining::New
        } else {
            if !self.eevdf && old_queue != queue {
                // migrate_task_rq_fair(), task_waking_fair(): virtual runtimes are relative to their queue's.
                let shift = self.queues[queue as usize].base_vruntime
                    - self.queues[old_queue as usize].base_vruntime;
                self.entities[entity as usize].vruntime += shift;
            }
            Joining::Wakeup
        };
        self.enqueue_task(now_ns, entity, joining);
        self.count_runnable(task, true);
        self.wait_on(task);
    }

    fn wakeup_preempts(&mut self, now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        let current = self.current_entity(cpu);
        if current == NONE || self.cpus[cpu.index()].reschedule {
            return true;
        }
        let entity = self.tasks[woken.index()].entity;
        let new = self.tasks[woken.index()].new;
        let preempts = if self.eevdf {
            self.eevdf_wakeup_preempts(now_ns, current, entity, new)
        } else {
            self.cfs_wakeup_preempts(now_ns, current, entity)
        };
        self.cpus[cpu.index()].reschedule |= preempts;
        self.cpus[cpu.index()].reschedule
    }

    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        let mut next = self.pick_entity(now_ns, cpu);
        while next == NONE {
            if !self.balance_idle(now_ns, cpu) {
                self.switch_to(now_ns, cpu, NONE);
                self.cpus[cpu.index()].reschedule = false;
                return None;
            }
            next = self.pick_entity(now_ns, cpu);
        }
        self.switch_to(now_ns, cpu, next);
        let task = Task(self.entities[next as usize].task);
        self.no_longer_waits(task);
        self.tasks[task.index()].state = State::Runs;
        let state = &mut self.cpus[cpu.index()];
        state.current = Some(task);
        state.reschedule = false;
        state.kicked = false;
        Some(task)
    }

    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        let Some(task) = self.cpus[cpu.index()].current.take() else {
            return;
        };
        let entity = self.tasks[task.index()].entity;
        self.update_current(now_ns, self.entities[entity as usize].queue);
        self.tasks[task.index()].ran_ns = now_ns;
        self.cpus[cpu.index()].lingering = entity;
        if runnable {
            self.wait_on(task);
        } else {
            self.tasks[task.index()].state = State::Sleeps;
            self.count_runnable(task, false);
            self.dequeue_entities(now_ns, entity, Leaving::Sleep);
        }
        if !self.version.keeps_common_groups() {
            self.switch_to(now_ns, cpu, NONE);
            return;
        }
        self.forget_unqueued(cpu);
    }

    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        let mut at = self.current_entity(cpu);
        while at != NONE {
            let queue = self.entities[at as usize].queue;
            self.update_current(now_ns, queue);
            self.update_share(now_ns, at);
            if !self.eevdf && self.queues[queue as usize].queued > 1 && self.cfs_tick(at) {
                self.cpus[cpu.index()].reschedule = true;
            }
            let group = self.queues[queue as usize].group;
            if group != 0 {
                self.fade_one(now_ns, group);
            }
            at = self.entities[at as usize].parent;
        }
        self.balance_at_tick(now_ns, cpu);
        self.cpus[cpu.index()].reschedule
    }

    fn tick_period_ns(&self) -> u64 {
        self.tunables.tick_ns
    }

    fn timer_ns(&self, cpu: Cpu) -> Option<u64> {
        let current = self.current_entity(cpu);
        if current == NONE || !self.version.has_slice_timer() || self.cpus[cpu.index()].queued < 2 {
            return None;
        }
        // hrtick_start_fair(); at least 10 us: hrtick_start() in kernel/sched/core.c.
        let who = &self.entities[current as usize];
        let rest_ns = who
            .load
            .to_real(who.deadline - who.vruntime, self.version.weight_shift());
        Some(who.exec_start_ns + rest_ns.max(10_000))
    }

    fn take_kick(&mut self) -> Option<Cpu> {
        self.kicks.take_first()
    }

    fn yield_now(&mut self, now_ns: u64, cpu: Cpu) {
        let current = self.current_entity(cpu);
        if current != NONE {
            self.yield_current(now_ns, current);
        }
    }

    fn yield_to(&mut self, now_ns: u64, cpu: Cpu, target: Task) -> YieldTo {
        let yielder = self.current_entity(cpu);
        let to = self.tasks[target.index()].cpu;
        let alone = |cpu: Cpu| self.cpus[cpu.index()].queued == 1;
        if self.version.refuses_yield_when_alone() && alone(cpu) && alone(to) {
            return YieldTo::Alone;
        }
        let entity = self.tasks[target.index()].entity;
        let waits = self.tasks[target.index()].state == State::Waits
            && self.cpus[to.index()].lingering != entity;
        if !waits || yielder == NONE {
            return YieldTo::Refused;
        }
        self.yield_current_to(now_ns, yielder, entity);
        YieldTo::Yielded
    }

    fn charged_ns(&self, task: Task) -> u64 {
        self.entities[self.tasks[task.index()].entity as usize].sum_exec_ns
    }

    fn runnable(&self, cpu: Cpu) -> u32 {
        self.cpus[cpu.index()].runnable
    }

    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        let task = &self.tasks[task.index()];
        (task.state != State::Sleeps).then_some(task.cpu)
    }
}
