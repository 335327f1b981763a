// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small host that keeps to the protocol of `HostScheduler`: tasks that use CPU time, sleep, yield.

#![allow(dead_code, reason = "each test file uses a part of it")]

use unspin_lab::ids::{Cpu, Task};
use unspin_lab::scheduler::{Enqueue, HostScheduler, YieldTo, from_name};
use unspin_lab::topology::Topology;

pub const MILLISECOND: u64 = 1_000_000;

/// What a task does repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// It only uses CPU time.
    Busy,
    /// It runs for the first time, then sleeps for the second, ns.
    Cycles { runs_ns: u64, sleeps_ns: u64 },
    /// It sleeps until the test wakes it.
    Sleeps,
}

/// A period in which a task ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub cpu: Cpu,
    pub task: Task,
    pub start_ns: u64,
    pub end_ns: u64,
}

pub struct Host {
    pub scheduler: Box<dyn HostScheduler>,
    pub now_ns: u64,
    pub current: Vec<Option<Task>>,
    /// When the current task began to run, by pCPU.
    since_ns: Vec<u64>,
    next_tick_ns: Vec<u64>,
    loads: Vec<Load>,
    /// When it next sleeps or wakes, by task.
    wakes_ns: Vec<Option<u64>>,
    ran_ns: Vec<u64>,
    asleep: Vec<bool>,
    pub log: Vec<Stretch>,
    pub keeps_log: bool,
}

impl Host {
    pub fn new(name: &str, topology: Topology) -> Host {
        let scheduler = from_name(name, topology, 1).expect("a known scheduler");
        let cpus = topology.cpus() as usize;
        Host {
            scheduler,
            now_ns: 0,
            current: vec![None; cpus],
            since_ns: vec![0; cpus],
            next_tick_ns: vec![u64::MAX; cpus],
            loads: Vec::new(),
            wakes_ns: Vec::new(),
            ran_ns: Vec::new(),
            asleep: Vec::new(),
            log: Vec::new(),
            keeps_log: true,
        }
    }

    /// Starts a task that was added to the scheduler, in the order of adding.
    pub fn start(&mut self, task: Task, load: Load) {
        assert_eq!(task.index(), self.loads.len());
        self.loads.push(load);
        self.wakes_ns.push(None);
        self.ran_ns.push(0);
        self.asleep.push(true);
        if load != Load::Sleeps {
            self.wake_as(task, None, Enqueue::New);
        }
    }

    pub fn wake(&mut self, task: Task, waker: Option<Cpu>) {
        self.wake_as(task, waker, Enqueue::Wakeup);
    }

    pub fn wake_as(&mut self, task: Task, waker: Option<Cpu>, why: Enqueue) {
        assert!(self.asleep[task.index()]);
        let cpu = self.scheduler.select_cpu(self.now_ns, task, waker);
        self.asleep[task.index()] = false;
        self.wakes_ns[task.index()] = None;
        self.scheduler.enqueue(self.now_ns, task, cpu, why);
        if self.scheduler.wakeup_preempts(self.now_ns, cpu, task) {
            self.reschedule(cpu);
        }
    }

    pub fn reschedule(&mut self, cpu: Cpu) {
        self.stop(cpu, true);
        self.pick(cpu);
    }

    pub fn sleep(&mut self, cpu: Cpu) {
        let task = self.current[cpu.index()].expect("somebody runs");
        self.asleep[task.index()] = true;
        self.stop(cpu, false);
        self.pick(cpu);
    }

    /// The current task yields; returns the task that runs then.
    pub fn yield_now(&mut self, cpu: Cpu) -> Option<Task> {
        self.scheduler.yield_now(self.now_ns, cpu);
        self.reschedule(cpu);
        self.current[cpu.index()]
    }

    pub fn yield_to(&mut self, cpu: Cpu, target: Task) -> YieldTo {
        let answer = self.scheduler.yield_to(self.now_ns, cpu, target);
        if answer == YieldTo::Yielded {
            let other = self.scheduler.cpu_of(target).expect("it is runnable");
            self.reschedule(cpu);
            if other != cpu {
                self.reschedule(other);
            }
        }
        answer
    }

    fn stop(&mut self, cpu: Cpu, runnable: bool) {
        let Some(task) = self.current[cpu.index()].take() else {
            return;
        };
        let start_ns = self.since_ns[cpu.index()];
        self.ran_ns[task.index()] += self.now_ns - start_ns;
        if self.keeps_log && self.now_ns > start_ns {
            self.log.push(Stretch {
                cpu,
                task,
                start_ns,
                end_ns: self.now_ns,
            });
        }
        self.scheduler.put_previous(self.now_ns, cpu, runnable);
        if let (true, Load::Cycles { sleeps_ns, .. }) = (!runnable, self.loads[task.index()]) {
            self.wakes_ns[task.index()] = Some(self.now_ns + sleeps_ns);
        }
    }

    fn pick(&mut self, cpu: Cpu) {
        let task = self.scheduler.pick_next(self.now_ns, cpu);
        self.current[cpu.index()] = task;
        self.since_ns[cpu.index()] = self.now_ns;
        let Some(task) = task else {
            self.next_tick_ns[cpu.index()] = u64::MAX;
            return;
        };
        assert!(!self.asleep[task.index()], "a sleeping task was picked");
        if self.next_tick_ns[cpu.index()] == u64::MAX {
            let period_ns = self.scheduler.tick_period_ns();
            self.next_tick_ns[cpu.index()] = (self.now_ns / period_ns + 1) * period_ns;
        }
    }

    /// When the current task of that pCPU will sleep, ns.
    fn sleeps_at(&self, cpu: usize) -> Option<u64> {
        let task = self.current[cpu]?;
        match self.loads[task.index()] {
            Load::Cycles { runs_ns, sleeps_ns } => {
                let cycles = self.ran_ns[task.index()] / runs_ns;
                let left_ns = (cycles + 1) * runs_ns - self.ran_ns[task.index()];
                (sleeps_ns > 0).then_some(self.since_ns[cpu] + left_ns)
            }
            _ => None,
        }
    }

    /// Runs up to that time.
    pub fn run_until(&mut self, end_ns: u64) {
        loop {
            let cpus = 0..self.current.len();
            let wake = (0..self.loads.len())
                .filter_map(|task| self.wakes_ns[task].map(|at| (at, 0, task)));
            let sleep = cpus
                .clone()
                .filter_map(|cpu| self.sleeps_at(cpu).map(|at| (at, 1, cpu)));
            let tick = cpus.clone().map(|cpu| (self.next_tick_ns[cpu], 2, cpu));
            let timer = cpus.filter(|cpu| self.current[*cpu].is_some());
            let timer = timer.filter_map(|cpu| {
                self.scheduler
                    .timer_ns(Cpu(cpu as u32))
                    .map(|at| (at, 3, cpu))
            });
            let next = wake.chain(sleep).chain(tick).chain(timer).min();
            let (at_ns, kind, index) = next.unwrap_or((u64::MAX, 0, 0));
            if at_ns > end_ns {
                self.now_ns = end_ns;
                return;
            }
            self.now_ns = self.now_ns.max(at_ns);
            let cpu = Cpu(index as u32);
            match kind {
                0 => self.wake(Task(index as u32), None),
                1 => self.sleep(cpu),
                _ => self.tick(cpu, kind == 2),
            }
        }
    }

    fn tick(&mut self, cpu: Cpu, periodic: bool) {
        if periodic {
            self.next_tick_ns[cpu.index()] += self.scheduler.tick_period_ns();
        }
        if self.scheduler.tick(self.now_ns, cpu) {
            self.reschedule(cpu);
        }
        while let Some(kicked) = self.scheduler.take_kick() {
            self.reschedule(kicked);
        }
    }

    /// Time that a task has run so far, the current period included, ns.
    pub fn ran_ns(&self, task: Task) -> u64 {
        let running = self
            .current
            .iter()
            .position(|current| *current == Some(task));
        self.ran_ns[task.index()] + running.map_or(0, |cpu| self.now_ns - self.since_ns[cpu])
    }
}
