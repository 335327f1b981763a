// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host scheduler with weights, groups and pins other than the world's, which reports the time that it charged to
//! each task.

use std::{cell::RefCell, rc::Rc};

use unspin_lab::{
    ids::{Cpu, Group, Task},
    scheduler::{Allowed, Enqueue, HostScheduler, Steer, YieldTo},
};

/// The time that a scheduler charged to each task, ns; set when the world is dropped.
pub type Charged = Rc<RefCell<Vec<u64>>>;

/// The groups of the VM of that number: weights from the root down, the last one the VM's own.
pub type Path = Vec<(usize, u32)>;

/// The scheduler; see the head of the file.
pub struct Arranged {
    pub inner: Box<dyn HostScheduler>,
    /// By VM: names and weights of the groups above its tasks, outermost first. Equal names are the same group. Empty:
    /// as the world sets them.
    pub paths: Vec<Path>,
    /// By task.
    pub pins: Vec<Allowed>,
    pub charged: Charged,
    /// The pCPU on which a task waits instead: a seeded bug.
    pub misplace: Option<Box<dyn FnMut(Cpu) -> Cpu>>,
    made: Vec<(Vec<usize>, Group)>,
    asked: u32,
    tasks: u32,
}

impl Arranged {
    pub fn new(inner: Box<dyn HostScheduler>) -> Arranged {
        Arranged {
            inner,
            paths: Vec::new(),
            pins: Vec::new(),
            charged: Charged::default(),
            misplace: None,
            made: Vec::new(),
            asked: 0,
            tasks: 0,
        }
    }
}

impl Drop for Arranged {
    fn drop(&mut self) {
        let charged = |task| self.inner.charged_ns(Task(task));
        *self.charged.borrow_mut() = (0..self.tasks).map(charged).collect();
    }
}

impl HostScheduler for Arranged {
    fn add_group(&mut self, parent: Group, weight: u32) -> Group {
        let vm = self.asked as usize;
        self.asked += 1;
        let Some(path) = self.paths.get(vm).cloned() else {
            return self.inner.add_group(parent, weight);
        };
        let (mut above, mut names) = (Group(0), Vec::new());
        for (name, weight) in path {
            names.push(name);
            let known = self.made.iter().find(|(known, _)| *known == names);
            above = match known {
                Some((_, group)) => *group,
                None => {
                    let group = self.inner.add_group(above, weight);
                    self.made.push((names.clone(), group));
                    group
                }
            };
        }
        above
    }

    fn add_task(
        &mut self,
        group: Group,
        weight: u32,
        allowed: Allowed,
        family: Option<u32>,
    ) -> Task {
        let pin = self.pins.get(self.tasks as usize).cloned();
        self.tasks += 1;
        self.inner
            .add_task(group, weight, pin.unwrap_or(allowed), family)
    }

    fn select_cpu(&mut self, now_ns: u64, task: Task, waker: Option<Cpu>) -> Cpu {
        let cpu = self.inner.select_cpu(now_ns, task, waker);
        let pin = self.pins.get(task.index());
        assert!(pin.is_none_or(|pin| pin.contains(cpu)), "{task:?}, {cpu:?}");
        match &mut self.misplace {
            Some(misplace) => misplace(cpu),
            None => cpu,
        }
    }

    fn enqueue(&mut self, now_ns: u64, task: Task, cpu: Cpu, why: Enqueue) {
        self.inner.enqueue(now_ns, task, cpu, why);
    }

    fn wakeup_preempts(&mut self, now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        self.inner.wakeup_preempts(now_ns, cpu, woken)
    }

    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        let next = self.inner.pick_next(now_ns, cpu);
        let pin = next.and_then(|task| self.pins.get(task.index()));
        assert!(pin.is_none_or(|pin| pin.contains(cpu)), "{next:?}, {cpu:?}");
        next
    }

    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        self.inner.put_previous(now_ns, cpu, runnable);
    }

    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        self.inner.tick(now_ns, cpu)
    }

    fn tick_period_ns(&self) -> u64 {
        self.inner.tick_period_ns()
    }

    fn timer_ns(&self, cpu: Cpu) -> Option<u64> {
        self.inner.timer_ns(cpu)
    }

    fn take_kick(&mut self) -> Option<Cpu> {
        self.inner.take_kick()
    }

    fn yield_now(&mut self, now_ns: u64, cpu: Cpu) {
        self.inner.yield_now(now_ns, cpu);
    }

    fn yield_to(&mut self, now_ns: u64, cpu: Cpu, target: Task) -> YieldTo {
        self.inner.yield_to(now_ns, cpu, target)
    }

    fn charged_ns(&self, task: Task) -> u64 {
        self.inner.charged_ns(task)
    }

    fn runnable(&self, cpu: Cpu) -> u32 {
        self.inner.runnable(cpu)
    }

    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        self.inner.cpu_of(task)
    }

    fn steering(&mut self) -> Option<&mut Steer> {
        self.inner.steering()
    }
}
