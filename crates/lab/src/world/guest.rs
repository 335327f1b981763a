// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of guest tasks to the world.

use unspin_policy::WaitExit;

use super::{
    World,
    pcpu::State,
    vcpu::{Access, Base, Sending, Spin, Then},
};
use crate::{
    engine::NEVER_NS,
    guest::{Request, Watcher, load_at, raw},
    ids::{Cpu, Lock},
    trace_event::{ExitReason, Observer, TraceEvent},
};

impl<O: Observer> World<O> {
    /// The guest task continues with that answer until its next request that takes time.
    pub(super) fn ask(&mut self, cpu: Cpu, vcpu: usize, answer: u32) {
        let mut answer = Some(answer);
        while let Some(last) = answer {
            let request = self.vcpus[vcpu].port.resume(last);
            self.read_notes(cpu, vcpu);
            answer = self.request(cpu, vcpu, request);
        }
        self.says_give_back(cpu, vcpu);
    }

    /// The locks requested and released since the last request.
    #[inline]
    fn read_notes(&mut self, cpu: Cpu, vcpu: usize) {
        let (asked, released) = self.vcpus[vcpu].port.take_notes();
        if let Some(lock) = released {
            self.released(cpu, vcpu, lock);
        }
        if let Some(lock) = asked {
            let what = TraceEvent::LockAsked {
                lock: self.lock(vcpu, lock),
            };
            self.emit(cpu, what);
            self.vcpus[vcpu].asks = Some((lock, self.now_ns));
            self.vcpus[vcpu].critical += 1;
        }
    }

    /// The lock's number among all locks of the world.
    fn lock(&self, vcpu: usize, lock: u32) -> Lock {
        Lock(self.vms[self.vcpus[vcpu].vm as usize].first_lock + lock)
    }

    fn released(&mut self, cpu: Cpu, vcpu: usize, lock: u32) {
        let what = TraceEvent::LockReleased {
            lock: self.lock(vcpu, lock),
        };
        self.emit(cpu, what);
        let now_ns = self.now_ns;
        let known = &mut self.vcpus[vcpu];
        known.critical -= 1;
        if let Some((_, since_ns)) = known.holds.take() {
            known.statistics.hold_ns += now_ns - since_ns;
        }
    }

    fn taken(&mut self, cpu: Cpu, vcpu: usize, lock: u32) {
        let what = TraceEvent::LockTaken {
            lock: self.lock(vcpu, lock),
        };
        self.emit(cpu, what);
        let now_ns = self.now_ns;
        let known = &mut self.vcpus[vcpu];
        let since_ns = known.asks.take().map_or(now_ns, |(_, since_ns)| since_ns);
        let wait_ns = now_ns - since_ns;
        known.holds = Some((lock, now_ns));
        known.statistics.acquisitions += 1;
        known.statistics.lock_wait_ns += wait_ns;
        known.statistics.longest_wait_ns = known.statistics.longest_wait_ns.max(wait_ns);
    }

    /// Handles a request; returns the answer if it takes no time.
    #[inline]
    fn request(&mut self, cpu: Cpu, vcpu: usize, request: Request) -> Option<u32> {
        use raw as r;
        match request.kind {
            r::UNSPIN_LAB_LOAD
            | r::UNSPIN_LAB_STORE
            | r::UNSPIN_LAB_EXCHANGE
            | r::UNSPIN_LAB_FETCH_ADD
            | r::UNSPIN_LAB_FETCH_OR
            | r::UNSPIN_LAB_FETCH_AND
            | r::UNSPIN_LAB_COMPARE_EXCHANGE => {
                let word = self.memory_of(vcpu).word(request.word);
                let access = Access {
                    kind: request.kind,
                    word,
                    first: request.first,
                    second: request.second,
                };
                self.access(cpu, vcpu, access)
            }
            r::UNSPIN_LAB_WAIT_WHILE | r::UNSPIN_LAB_WAIT_UNTIL => {
                let word = self.memory_of(vcpu).word(request.word);
                let until = request.kind == r::UNSPIN_LAB_WAIT_UNTIL;
                let watcher = Watcher {
                    vcpu: vcpu as u32,
                    word,
                    value: request.first,
                    until,
                    looks: true,
                };
                let spin = Spin {
                    watcher,
                    limit_ns: self.spins_ns(vcpu, request.second),
                    spent_ns: 0,
                    seen_in_ns: NEVER_NS,
                    help_at_ns: self.help_after_ns(vcpu),
                };
                self.spin_begin(cpu, vcpu, spin);
                None
            }
            r::UNSPIN_LAB_USER => {
                self.emit(cpu, TraceEvent::User);
                self.vcpus[vcpu].user = true;
                self.work(vcpu, request.first)
            }
            r::UNSPIN_LAB_KERNEL => self.work(vcpu, request.first),
            r::UNSPIN_LAB_HOLD => {
                self.taken(cpu, vcpu, request.second);
                self.work(vcpu, request.first)
            }
            _ => self.rare_request(cpu, vcpu, request),
        }
    }

    fn work(&mut self, vcpu: usize, loops: u32) -> Option<u32> {
        let known = &mut self.vcpus[vcpu];
        let left_ns = self.costs.work_ns(loops) + std::mem::take(&mut known.debt_ns);
        known.base = Base::Work { left_ns };
        None
    }

    fn rare_request(&mut self, cpu: Cpu, vcpu: usize, request: Request) -> Option<u32> {
        use raw as r;
        match request.kind {
            r::UNSPIN_LAB_SEND | r::UNSPIN_LAB_PASS | r::UNSPIN_LAB_WAKE => {
                let what = match request.kind {
                    r::UNSPIN_LAB_SEND => Sending::Shootdown,
                    r::UNSPIN_LAB_PASS => Sending::Token,
                    _ => Sending::Wake(self.number_of_vm(vcpu, request.first)),
                };
                self.vcpus[vcpu].base = Base::Answer(0);
                let work_ns = self.costs.ipi_send_ns;
                self.exit(cpu, vcpu, ExitReason::Apic, work_ns, Then::Send(what));
                None
            }
            r::UNSPIN_LAB_KICK | r::UNSPIN_LAB_HELP | r::UNSPIN_LAB_HELP_NAMED => {
                let other = self.number_of_vm(vcpu, request.first);
                let then = match request.kind {
                    r::UNSPIN_LAB_KICK => Then::Send(Sending::Kick(other)),
                    r::UNSPIN_LAB_HELP => Then::Help,
                    _ => Then::HelpNamed(self.vms[self.vcpus[vcpu].vm as usize].first + other),
                };
                self.vcpus[vcpu].base = Base::Answer(0);
                match then {
                    Then::Help => self.threshold_exit(vcpu, WaitExit::Help),
                    Then::HelpNamed(_) => self.threshold_exit(vcpu, WaitExit::Yield),
                    _ => {}
                }
                let work_ns = self.costs.hypercall_ns;
                self.exit(cpu, vcpu, ExitReason::Hypercall, work_ns, then);
                None
            }
            r::UNSPIN_LAB_TAKE_KICK => {
                let kicked = std::mem::take(&mut self.vcpus[vcpu].kicked);
                Some(kicked.into())
            }
            r::UNSPIN_LAB_PREEMPTED => {
                let number = self.number_of_vm(vcpu, request.first);
                let other = self.vms[self.vcpus[vcpu].vm as usize].first + number;
                let task = self.vcpus[other as usize].task;
                let preempted = self.tasks[task.index()].state == State::Runnable;
                Some(preempted.into())
            }
            r::UNSPIN_LAB_OVERLOADED => Some((self.scheduler.runnable(cpu) > 1).into()),
            r::UNSPIN_LAB_SPIN_COUNT => Some(self.spin_count(vcpu, request.first)),
            r::UNSPIN_LAB_RUNNABLE => {
                let others = self.vcpus[vcpu].others.iter();
                Some(1 + others.filter(|other| other.is_ready()).count() as u32)
            }
            r::UNSPIN_LAB_TAKE => {
                let known = &mut self.vcpus[vcpu];
                let there = known.tokens != 0;
                known.tokens -= u32::from(there);
                Some(there.into())
            }
            r::UNSPIN_LAB_HALT => {
                self.vcpus[vcpu].base = Base::Halted;
                self.guest_blocks(cpu, vcpu);
                None
            }
            r::UNSPIN_LAB_ITERATED => {
                self.vcpus[vcpu].statistics.operations += 1;
                self.guest_load_changes(vcpu);
                (!self.touches_a_page(cpu, vcpu)).then_some(0)
            }
            r::UNSPIN_LAB_DONE => {
                self.guest_task_done(cpu, vcpu);
                None
            }
            kind => unreachable!("c/lab.h has no request {kind}"),
        }
    }

    /// Sets the load of the next iteration of the task that runs there, if its VM's load changes.
    fn guest_load_changes(&mut self, vcpu: usize) {
        let every_ns = self.vms[self.vcpus[vcpu].vm as usize].load_changes_every_ns;
        if every_ns > 0 {
            let load = load_at(every_ns, self.now_ns);
            self.vcpus[vcpu].port.set_load(load);
        }
    }

    /// The index of a vCPU that a guest names by its number in its VM.
    fn number_of_vm(&self, vcpu: usize, number: u32) -> u32 {
        number % self.vms[self.vcpus[vcpu].vm as usize].vcpus
    }

    /// Work that takes time is done.
    pub(super) fn work_done(&mut self, cpu: Cpu, vcpu: usize) {
        if self.vcpus[vcpu].user {
            self.vcpus[vcpu].user = false;
            self.emit(cpu, TraceEvent::Kernel);
        }
        self.ask(cpu, vcpu, 0);
    }
}
