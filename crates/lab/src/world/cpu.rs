// SPDX-License-Identifier: MIT OR Apache-2.0
//! pCPUs: due events, running tasks, ticks and switches.

use super::{
    World,
    pcpu::{FULL_SPEED, State},
    vcpu::Base,
};
use crate::{
    engine::NEVER_NS,
    ids::{Cpu, Task},
    scheduler::Enqueue,
    topology::Distance,
    trace_event::{Observer, TraceEvent},
};

impl<O: Observer> World<O> {
    /// Handles the event that is due on that pCPU.
    pub(super) fn cpu_event(&mut self, cpu: Cpu) {
        let pcpu = &mut self.cpus[cpu.index()];
        if pcpu.due_ns <= self.now_ns {
            self.account(cpu);
            self.layer_done(cpu);
        } else if pcpu.ipi_arrives_ns <= self.now_ns {
            pcpu.ipi_arrives_ns = NEVER_NS;
            self.account(cpu);
            self.look(cpu);
        } else if pcpu.borrow_ns() <= self.now_ns {
            self.account(cpu);
            self.borrow_due(cpu);
        } else if pcpu.sample_ns <= self.now_ns {
            self.account(cpu);
            self.take_sample(cpu);
        } else {
            let periodic = pcpu.tick_ns <= self.now_ns;
            self.account(cpu);
            self.tick(cpu, periodic);
        }
        self.plan(cpu);
    }

    /// Accounts for what the current task has done up to now.
    #[inline]
    pub(super) fn account(&mut self, cpu: Cpu) {
        let pcpu = &mut self.cpus[cpu.index()];
        let elapsed_ns = self.now_ns - pcpu.since_ns;
        pcpu.since_ns = self.now_ns;
        if elapsed_ns != 0 {
            match self.vcpu_on(cpu) {
                Some(vcpu) => {
                    let speed = u64::from(self.speed(cpu));
                    self.vcpus[vcpu].progress(elapsed_ns * speed / FULL_SPEED);
                }
                None => self.thread_progresses(cpu, elapsed_ns),
            }
        }
    }

    /// Plans the next event there, after any change. What was done up to now is accounted for already.
    #[inline]
    pub(super) fn plan(&mut self, cpu: Cpu) {
        let due_ns = match self.vcpu_on(cpu) {
            Some(vcpu) => self.after(cpu, self.vcpus[vcpu].due_in_ns()),
            None => self.thread_due_ns(cpu),
        };
        let pcpu = &mut self.cpus[cpu.index()];
        pcpu.due_ns = due_ns;
        let next_ns = pcpu.next_ns();
        self.tree.set(cpu.0, next_ns);
    }

    /// When that much work will be done there.
    #[inline]
    pub(super) fn after(&self, cpu: Cpu, in_ns: u64) -> u64 {
        let in_ns = match u64::from(self.speed(cpu)) {
            FULL_SPEED => in_ns,
            // Rounded up, so that the layer is done at that time.
            speed => (in_ns.min(NEVER_NS / FULL_SPEED) * FULL_SPEED).div_ceil(speed),
        };
        self.now_ns.saturating_add(in_ns)
    }

    /// An interrupt will arrive there in that many ns.
    pub(super) fn kick(&mut self, cpu: Cpu, in_ns: u64) {
        let pcpu = &mut self.cpus[cpu.index()];
        let at_ns = self.now_ns + in_ns;
        if at_ns < pcpu.ipi_arrives_ns {
            pcpu.ipi_arrives_ns = at_ns;
            let next_ns = pcpu.next_ns();
            self.tree.set(cpu.0, next_ns);
        }
    }

    /// Makes the scheduler choose again there: at once if this is that pCPU's own event, otherwise by an interrupt.
    pub(super) fn reschedule_soon(&mut self, cpu: Cpu, here: Option<Cpu>) {
        self.cpus[cpu.index()].resched = true;
        let in_ns = if here == Some(cpu) {
            0
        } else {
            self.costs.ipi_ns
        };
        self.kick(cpu, in_ns.into());
    }

    /// An interrupt arrives.
    fn look(&mut self, cpu: Cpu) {
        if self.cpus[cpu.index()].resched || self.cpus[cpu.index()].current.is_none() {
            if let Some(vcpu) = self.vcpu_on(cpu) {
                self.interrupt_the_guest(cpu, vcpu, 0);
            }
            self.reschedule(cpu);
        } else if let Some(vcpu) = self.vcpu_on(cpu) {
            if !self.vcpus[vcpu].pending.is_empty() {
                self.interrupt_arrives(cpu, vcpu);
            } else {
                // No task here takes it, but it was sent.
                self.interrupt_the_guest(cpu, vcpu, 0);
            }
        }
    }

    fn tick(&mut self, cpu: Cpu, periodic: bool) {
        if periodic {
            self.cpus[cpu.index()].tick_ns += self.scheduler.tick_period_ns();
        }
        if let Some(vcpu) = self.vcpu_on(cpu) {
            self.interrupt_the_guest(cpu, vcpu, self.costs.tick_ns);
        }
        let again = self.scheduler.tick(self.now_ns, cpu);
        if !self.kick_who_shall_look(cpu) {
            self.wake_an_idle_cpu(cpu);
        }
        if again && !self.extend_slice(cpu) {
            self.reschedule(cpu);
        } else {
            self.set_slice_timer(cpu);
        }
    }

    /// Makes those pCPUs search for work or choose again for which the scheduler requires it.
    fn kick_who_shall_look(&mut self, here: Cpu) -> bool {
        let mut any = false;
        while let Some(cpu) = self.scheduler.take_kick() {
            any = true;
            if cpu != here {
                self.reschedule_soon(cpu, None);
            }
        }
        any
    }

    /// For schedulers that do not report it: if a task waits at a tick while a pCPU is idle, the nearest idle one searches
    /// for work, as after the kernel's `nohz_balancer_kick()`, without its conditions on load.
    fn wake_an_idle_cpu(&mut self, cpu: Cpu) {
        if self.scheduler.runnable(cpu) < 2 {
            return;
        }
        for distance in Distance::ALL {
            let (first, count) = self.topology.around(cpu, distance);
            let mut cpus = first.0..first.0 + count;
            let idle = cpus.find(|other| self.cpus[*other as usize].current.is_none());
            if let Some(idle) = idle {
                self.kick(Cpu(idle), self.costs.ipi_ns.into());
                return;
            }
        }
    }

    /// The end of the running task's slice, for schedulers that do not wait for ticks.
    fn set_slice_timer(&mut self, cpu: Cpu) {
        let at_ns = self.scheduler.timer_ns(cpu).unwrap_or(NEVER_NS);
        let pcpu = &mut self.cpus[cpu.index()];
        pcpu.slice_ns = at_ns.max(self.now_ns);
        let next_ns = pcpu.next_ns();
        self.tree.set(cpu.0, next_ns);
    }

    /// The scheduler chooses the task to run there.
    pub(super) fn reschedule(&mut self, cpu: Cpu) {
        self.cpus[cpu.index()].resched = false;
        let before = self.cpus[cpu.index()].current;
        if before.is_some() {
            self.scheduler.put_previous(self.now_ns, cpu, true);
        }
        let next = self.scheduler.pick_next(self.now_ns, cpu);
        if next == before {
            self.continue_slice(cpu);
            self.set_slice_timer(cpu);
            return;
        }
        if let Some(task) = before {
            self.leave(cpu, task, true, true);
        }
        self.arrive(cpu, next);
    }

    /// The same task continues: without borrowed time, or on a slice of its own.
    fn continue_slice(&mut self, cpu: Cpu) {
        self.borrow_end(cpu);
        if let Some(vcpu) = self.vcpu_on(cpu) {
            self.slice_begins(cpu, vcpu);
        }
    }

    /// The current task sleeps; another task runs.
    pub(super) fn block(&mut self, cpu: Cpu) {
        let Some(task) = self.cpus[cpu.index()].current else {
            return;
        };
        self.cpus[cpu.index()].resched = false;
        self.scheduler.put_previous(self.now_ns, cpu, false);
        self.leave(cpu, task, false, false);
        let next = self.scheduler.pick_next(self.now_ns, cpu);
        self.arrive(cpu, next);
    }

    fn leave(&mut self, cpu: Cpu, task: Task, runnable: bool, preempted: bool) {
        self.borrow_end(cpu);
        let what = TraceEvent::SwitchOut {
            task,
            runnable,
            preempted,
        };
        self.emit(cpu, what);
        let state = if runnable {
            State::Runnable
        } else {
            State::Sleeping
        };
        let known = &mut self.tasks[task.index()];
        known.becomes(state, self.now_ns);
        known.on = None;
        if let Some(vcpu) = known.vcpu {
            self.samples_end(cpu, vcpu as usize, runnable);
            if runnable {
                self.count_preemption(vcpu as usize);
            }
        }
    }

    fn count_preemption(&mut self, vcpu: usize) {
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.statistics.preemptions += 1;
        if vcpu.holds.is_some() {
            vcpu.statistics.preemptions_holding += 1;
        } else if vcpu.asks.is_some() {
            vcpu.statistics.preemptions_waiting += 1;
        }
    }

    fn arrive(&mut self, cpu: Cpu, next: Option<Task>) {
        let now_ns = self.now_ns;
        let period_ns = self.scheduler.tick_period_ns();
        self.siblings(cpu, World::account);
        let pcpu = &mut self.cpus[cpu.index()];
        match (pcpu.current, next) {
            (Some(_), None) => {
                pcpu.busy_ns += now_ns - pcpu.idle_since_ns;
                pcpu.idle_since_ns = now_ns;
                pcpu.tick_ns = NEVER_NS;
            }
            (None, Some(_)) => {
                pcpu.idle_ns += now_ns - pcpu.idle_since_ns;
                pcpu.idle_since_ns = now_ns;
                // Ticks are at multiples of the period, as jiffies are, on all pCPUs unless they are skewed.
                let skew_ns = pcpu.skew_ns;
                let periods = (now_ns + period_ns - skew_ns) / period_ns;
                pcpu.tick_ns = periods * period_ns + skew_ns;
            }
            _ => {}
        }
        pcpu.current = next;
        pcpu.since_ns = now_ns;
        pcpu.slice_ns = NEVER_NS;
        self.siblings(cpu, World::plan);
        let Some(task) = next else {
            return;
        };
        self.set_slice_timer(cpu);
        let known = &mut self.tasks[task.index()];
        known.becomes(State::Running, now_ns);
        known.on = Some(cpu);
        self.emit(cpu, TraceEvent::SwitchIn { task });
        let switch_ns = u64::from(self.costs.switch_ns);
        if let Some(vcpu) = self.vcpu_on(cpu) {
            // It left its guest before it left its pCPU.
            self.vcpus[vcpu].host_left_ns += switch_ns;
            self.arrives(vcpu);
            self.slice_begins(cpu, vcpu);
            self.renew_samples(cpu, vcpu);
        } else {
            self.tasks[task.index()].add_work(switch_ns);
        }
    }

    /// Wakes a sleeping task. `waker`: the pCPU that wakes it.
    pub(super) fn wake(&mut self, task: Task, waker: Option<Cpu>) {
        if self.tasks[task.index()].state != State::Sleeping {
            return;
        }
        let cpu = self.scheduler.select_cpu(self.now_ns, task, waker);
        self.tasks[task.index()].becomes(State::Runnable, self.now_ns);
        let place = waker.unwrap_or(cpu);
        self.emit(place, TraceEvent::Wakeup { task, target: cpu });
        if let Some(vcpu) = self.tasks[task.index()].vcpu {
            self.vcpus[vcpu as usize].pending_ipi.woken = true;
        }
        let why = match self.tasks[task.index()].waits {
            1 => Enqueue::New,
            _ => Enqueue::Wakeup,
        };
        self.scheduler.enqueue(self.now_ns, task, cpu, why);
        if self.cpus[cpu.index()].current.is_none() {
            self.kick(cpu, self.costs.ipi_ns.into());
        } else if self.scheduler.wakeup_preempts(self.now_ns, cpu, task) {
            self.reschedule_soon(cpu, waker);
        } else {
            self.set_slice_timer(cpu);
        }
        self.kick_who_shall_look(cpu);
    }

    /// The layer that was due is done.
    fn layer_done(&mut self, cpu: Cpu) {
        let Some(vcpu) = self.vcpu_on(cpu) else {
            return self.thread_done(cpu);
        };
        if !self.vcpus[vcpu].inside {
            self.host_done(cpu, vcpu);
        } else if self.vcpus[vcpu].handler.is_some() {
            self.handler_done(cpu, vcpu);
        } else {
            match self.vcpus[vcpu].base {
                Base::Spin(spin) => self.spin_due(cpu, vcpu, spin),
                Base::Access { access, .. } => self.access_done(cpu, vcpu, access),
                Base::Answer(answer) => self.ask(cpu, vcpu, answer),
                Base::Work { .. } => self.work_done(cpu, vcpu),
                Base::Halted | Base::Faulted | Base::Done => {}
            }
        }
    }
}
