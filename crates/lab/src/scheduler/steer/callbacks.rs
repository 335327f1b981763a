// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that the world calls: the model of the callbacks in bpf/scheduler/main.bpf.c.

use unspin_policy::mechanics::{GroupWeight, TICK_NS, slice_lender, slice_returns, start_vtime_ns};

use super::{Entity, GroupState, Steer};
use crate::{
    ids::{Cpu, Group, Task},
    scheduler::{Allowed, Enqueue, HostScheduler, YieldTo},
};

impl HostScheduler for Steer {
    fn add_group(&mut self, parent: Group, weight: u32) -> Group {
        self.groups.push(GroupState {
            parent,
            active: GroupWeight::new(weight),
        });
        Group(self.groups.len() as u32 - 1)
    }

    fn add_task(
        &mut self,
        group: Group,
        weight: u32,
        allowed: Allowed,
        family: Option<u32>,
    ) -> Task {
        self.tasks.push(Entity {
            group,
            weight,
            allowed,
            vtime_ns: 0,
            charged_weight: unspin_policy::mechanics::Weight::flat(weight, []),
            home: None,
            charged_ns: 0,
            vcpu: family.is_some(),
            lock_ns: None,
            uses_locks: false,
            answer_slices: 0,
            awake_ns: 0,
            slices_ns: [self.slice_ns; 2],
            burst_ns: self.slice_ns,
            mean_ns: self.slice_ns,
            lag_ns: 0,
            last_cpu: None,
            cpu: None,
            queued: false,
            called_until_ns: 0,
        });
        Task(self.tasks.len() as u32 - 1)
    }

    fn select_cpu(&mut self, _: u64, task: Task, waker: Option<Cpu>) -> Cpu {
        let allowed = &self.tasks[task.index()].allowed;
        let near = match allowed {
            Allowed::Only(cpus) => cpus[0],
            Allowed::All => waker.unwrap_or(Cpu(task.0 % self.topology.cpus())),
        };
        let count = self.topology.cpus();
        let mut around = (0..count).map(|step| Cpu((near.0 + step) % count));
        let idle =
            around.find(|cpu| allowed.contains(*cpu) && self.cpus[cpu.index()].current.is_none());
        idle.unwrap_or(near)
    }

    fn enqueue(&mut self, _: u64, task: Task, cpu: Cpu, why: Enqueue) {
        self.activate(task, true);
        if why == Enqueue::New {
            let weight = self.flat_weight(task);
            let clock_ns = self.crowd_clock_ns(None, self.shared_clock.now_ns);
            let start_ns = start_vtime_ns(clock_ns, weight, self.slice_ns);
            self.tasks[task.index()].vtime_ns = start_ns;
        }
        self.queue(task, cpu, why == Enqueue::Wakeup);
    }

    fn wakeup_preempts(&mut self, now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        self.preempts(now_ns, cpu, woken)
    }

    fn take_kick(&mut self) -> Option<Cpu> {
        self.kick.take()
    }

    fn timer_ns(&self, cpu: Cpu) -> Option<u64> {
        let here = &self.cpus[cpu.index()];
        let waits =
            here.lender.is_some() || !self.shared.is_empty() || !self.own[cpu.index()].is_empty();
        (here.current.is_some() && waits).then(|| here.since_ns + here.slice_left_ns)
    }

    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        self.cpus[cpu.index()].since_ns = now_ns;
        let yield_buddy = self.cpus[cpu.index()].yield_buddy.take();
        let here = &mut self.cpus[cpu.index()];
        let next = match here.borrower.take() {
            Some(borrower) => Some(borrower),
            None => match here
                .lender
                .take()
                .filter(|_| slice_returns(here.slice_left_ns))
            {
                Some(lender) => Some(lender),
                None => {
                    here.slice = None;
                    let has_buddy = match yield_buddy {
                        Some(yield_buddy) => self.follow_yield_buddy(cpu, yield_buddy),
                        None => self.take_call(now_ns, cpu),
                    };
                    let head = has_buddy.or_else(|| self.least(now_ns, cpu));
                    if let Some(task) = head {
                        self.begin_slice(now_ns, task, cpu);
                        self.cpus[cpu.index()].began_ns = now_ns;
                        self.tasks[task.index()].called_until_ns = 0;
                    }
                    head
                }
            },
        };
        self.cpus[cpu.index()].current = next;
        if let Some(task) = next {
            self.tasks[task.index()].cpu = Some(cpu);
            self.tasks[task.index()].last_cpu = Some(cpu);
        }
        next
    }

    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        self.charge(now_ns, cpu);
        let here = &mut self.cpus[cpu.index()];
        let Some(task) = here.current.take() else {
            return;
        };
        let own = here.slice == Some(task);
        // Unlike in BPF, a task whose slice is used up does not pass it on.
        let passes_on = here.borrower.is_some() && !(own && here.slice_left_ns == 0);
        let before = here.lender.take();
        let lender = if passes_on {
            let lender = before.map(|lender| lender.0);
            slice_lender(lender, task.0, here.returns).map(Task)
        } else {
            before
        };
        // A lender that sleeps does not continue.
        let continues = slice_returns(here.slice_left_ns);
        here.lender = lender.filter(|lender| continues && (*lender != task || runnable));
        let lender = here.lender;
        let mut waits = before.filter(|before| lender != Some(*before));
        if own && !passes_on {
            here.slice = None;
            waits = waits.or(here.borrower.take());
        }
        if let Some(other) = waits {
            self.queue(other, cpu, false);
        }
        if lender != Some(task) {
            self.leave_cpu(task, cpu, runnable);
        }
    }

    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        self.charge(now_ns, cpu);
        let here = &self.cpus[cpu.index()];
        // A lender waits in no queue.
        let (used_up, lender) = (here.slice_left_ns == 0, here.lender.is_some());
        used_up && (lender || self.head(cpu).is_some())
    }

    fn tick_period_ns(&self) -> u64 {
        TICK_NS
    }

    fn yield_now(&mut self, now_ns: u64, cpu: Cpu) {
        self.end_slice(now_ns, cpu);
    }

    /// What sched_ext does for a scheduler without this callback; the world calls the policies instead.
    fn yield_to(&mut self, _: u64, _: Cpu, _: Task) -> YieldTo {
        YieldTo::Refused
    }

    fn charged_ns(&self, task: Task) -> u64 {
        self.tasks[task.index()].charged_ns
    }

    fn runnable(&self, cpu: Cpu) -> u32 {
        let here = &self.cpus[cpu.index()];
        let held = [here.current, here.lender, here.borrower];
        let held = held.iter().flatten().count();
        (held + self.shared.len() + self.own[cpu.index()].len()) as u32
    }

    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        self.tasks[task.index()].cpu
    }

    fn steering(&mut self) -> Option<&mut Steer> {
        Some(self)
    }
}
