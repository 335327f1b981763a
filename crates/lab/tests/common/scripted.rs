// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that takes pCPUs away at given times, for the examples in papers: vCPU number n has pCPU n, and a thread that
//! uses CPU time runs there while the vCPU is away or asleep.

use unspin_lab::{
    ids::{Cpu, Group, Task},
    scheduler::{Allowed, Enqueue, HostScheduler, YieldTo},
};

/// The task has no pCPU from the first time until the second, ns.
pub type Away = (u32, u64, u64);

/// As many vCPUs, and as many cpu_hogs (`LabHost::cpu_hogs`), as pCPUs.
pub struct Scripted {
    pub cpus: u32,
    pub away: Vec<Away>,
    runnable: Vec<bool>,
    current: Vec<Option<(Task, u64)>>,
    charged_ns: Vec<u64>,
}

impl Scripted {
    pub fn new(cpus: u32, away: &[Away]) -> Scripted {
        Scripted {
            cpus,
            away: away.to_vec(),
            runnable: vec![false; 2 * cpus as usize],
            current: vec![None; cpus as usize],
            charged_ns: vec![0; 2 * cpus as usize],
        }
    }

    fn is_away(&self, now_ns: u64, task: Task) -> bool {
        let mut away = self.away.iter();
        away.any(|(who, from_ns, until_ns)| {
            *who == task.0 && (*from_ns..*until_ns).contains(&now_ns)
        })
    }

    /// The task that should have that pCPU.
    fn wanted(&self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        let vcpu = Task(cpu.0);
        let cpu_hog = Task(cpu.0 + self.cpus);
        if self.runnable[vcpu.index()] && !self.is_away(now_ns, vcpu) {
            Some(vcpu)
        } else {
            self.runnable[cpu_hog.index()].then_some(cpu_hog)
        }
    }
}

impl HostScheduler for Scripted {
    fn add_group(&mut self, _: Group, _: u32) -> Group {
        Group(1)
    }
    fn add_task(&mut self, _: Group, _: u32, _: Allowed, family: Option<u32>) -> Task {
        let first = if family.is_some() { 0 } else { self.cpus };
        let taken = self.runnable[first as usize..]
            .iter()
            .take_while(|known| **known);
        let task = Task(first + taken.count() as u32);
        // Marks it as created; it begins to run at `enqueue`.
        self.runnable[task.index()] = true;
        task
    }
    fn select_cpu(&mut self, _: u64, task: Task, _: Option<Cpu>) -> Cpu {
        Cpu(task.0 % self.cpus)
    }
    fn enqueue(&mut self, _: u64, task: Task, _: Cpu, _: Enqueue) {
        self.runnable[task.index()] = true;
    }
    fn wakeup_preempts(&mut self, now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        self.wanted(now_ns, cpu) == Some(woken)
    }
    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        let next = self.wanted(now_ns, cpu);
        self.current[cpu.index()] = next.map(|task| (task, now_ns));
        next
    }
    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        if let Some((task, since_ns)) = self.current[cpu.index()].take() {
            self.runnable[task.index()] = runnable;
            self.charged_ns[task.index()] += now_ns - since_ns;
        }
    }
    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        self.current[cpu.index()].map(|(task, _)| task) != self.wanted(now_ns, cpu)
    }
    fn tick_period_ns(&self) -> u64 {
        1_000_000_000
    }
    fn timer_ns(&self, cpu: Cpu) -> Option<u64> {
        let (_, since_ns) = self.current[cpu.index()]?;
        let mine = self.away.iter().filter(|(task, ..)| *task == cpu.0);
        let edges = mine.flat_map(|(_, from_ns, until_ns)| [*from_ns, *until_ns]);
        edges.filter(|at_ns| *at_ns > since_ns).min()
    }
    fn yield_now(&mut self, _: u64, _: Cpu) {}
    fn yield_to(&mut self, _: u64, _: Cpu, _: Task) -> YieldTo {
        YieldTo::Alone
    }
    fn charged_ns(&self, task: Task) -> u64 {
        self.charged_ns[task.index()]
    }
    fn runnable(&self, _: Cpu) -> u32 {
        // No task is moved.
        1
    }
    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        self.runnable[task.index()].then_some(Cpu(task.0 % self.cpus))
    }
}
