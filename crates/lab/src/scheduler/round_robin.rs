// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simplest scheduler: one queue for all pCPUs, slices of a fixed length, weights ignored. For comparison with
//! theory, where nothing else must have an effect; no kernel has it.

use std::collections::VecDeque;

use super::{Allowed, Enqueue, HostScheduler, YieldTo};
use crate::ids::{Cpu, Group, Task};

#[derive(Clone, Debug)]
struct Entity {
    allowed: Allowed,
    /// Where a runnable task is.
    cpu: Option<Cpu>,
    charged_ns: u64,
}

/// Round robin; see the head of the file.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    slice_ns: u64,
    queue: VecDeque<Task>,
    tasks: Vec<Entity>,
    current: Vec<Option<(Task, u64)>>,
    groups: u32,
}

impl RoundRobin {
    /// For that many pCPUs; a slice lasts `slice_ns`, 1 or more.
    pub fn new(cpus: u32, slice_ns: u64) -> RoundRobin {
        RoundRobin {
            slice_ns: slice_ns.max(1),
            queue: VecDeque::new(),
            tasks: Vec::new(),
            current: vec![None; cpus as usize],
            groups: 0,
        }
    }
}

impl HostScheduler for RoundRobin {
    fn add_group(&mut self, _: Group, _: u32) -> Group {
        self.groups += 1;
        Group(self.groups)
    }

    fn add_task(&mut self, _: Group, _: u32, allowed: Allowed, _: Option<u32>) -> Task {
        self.tasks.push(Entity {
            allowed,
            cpu: None,
            charged_ns: 0,
        });
        Task(self.tasks.len() as u32 - 1)
    }

    fn select_cpu(&mut self, _: u64, task: Task, waker: Option<Cpu>) -> Cpu {
        let allowed = &self.tasks[task.index()].allowed;
        let mut cpus = (0..self.current.len() as u32).map(Cpu);
        let idle = cpus.find(|cpu| allowed.contains(*cpu) && self.current[cpu.index()].is_none());
        let first = match allowed {
            Allowed::All => waker.unwrap_or(Cpu(0)),
            Allowed::Only(cpus) => cpus[0],
        };
        idle.unwrap_or(first)
    }

    fn enqueue(&mut self, _: u64, task: Task, cpu: Cpu, _: Enqueue) {
        self.tasks[task.index()].cpu = Some(cpu);
        self.queue.push_back(task);
    }

    fn wakeup_preempts(&mut self, _: u64, _: Cpu, _: Task) -> bool {
        false
    }

    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        let allowed = |task: &Task| self.tasks[task.index()].allowed.contains(cpu);
        let place = self.queue.iter().position(allowed)?;
        let task = self.queue.remove(place)?;
        self.tasks[task.index()].cpu = Some(cpu);
        self.current[cpu.index()] = Some((task, now_ns));
        Some(task)
    }

    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        if let Some((task, since_ns)) = self.current[cpu.index()].take() {
            let entity = &mut self.tasks[task.index()];
            entity.charged_ns += now_ns - since_ns;
            if runnable {
                self.queue.push_back(task);
            } else {
                entity.cpu = None;
            }
        }
    }

    fn tick(&mut self, _: u64, _: Cpu) -> bool {
        !self.queue.is_empty()
    }

    fn tick_period_ns(&self) -> u64 {
        self.slice_ns
    }

    fn yield_now(&mut self, _: u64, _: Cpu) {}

    /// Refused: two spinners that yield to each other would permanently keep all others from running.
    fn yield_to(&mut self, _: u64, _: Cpu, _: Task) -> YieldTo {
        YieldTo::Refused
    }

    fn charged_ns(&self, task: Task) -> u64 {
        self.tasks[task.index()].charged_ns
    }

    fn runnable(&self, cpu: Cpu) -> u32 {
        let current = u32::from(self.current[cpu.index()].is_some());
        current + self.queue.len() as u32
    }

    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        self.tasks[task.index()].cpu
    }
}
