// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pCPU: its planned events, and its speed while its core's other threads are busy. A task of the host, and how its
//! time is accounted: running + runnable + halted is the wall time.

use super::World;
use crate::{
    engine::NEVER_NS,
    ids::{Cpu, Task},
    topology::Distance,
    trace_event::Observer,
};

/// The speed of a pCPU whose core has no other busy thread.
pub(super) const FULL_SPEED: u64 = 1_024;

/// A pCPU.
#[derive(Clone, Debug)]
pub(super) struct Pcpu {
    pub current: Option<Task>,
    /// Time up to which the current task is accounted for.
    pub since_ns: u64,
    /// When the current task's present layer is done.
    pub due_ns: u64,
    /// When an interrupt from another pCPU arrives.
    pub ipi_arrives_ns: u64,
    pub tick_ns: u64,
    /// When a loan or grant ends, and when it is polled; `NEVER_NS`: there is none.
    pub borrow_until_ns: u64,
    pub poll_at_ns: u64,
    /// For how long the next borrower may run.
    pub loan_ns: u64,
    /// When the scheduler must be called for the current task besides ticks: the end of its slice.
    pub slice_ns: u64,
    /// When the vCPU there is stopped to see whether it spins; `NEVER_NS`: it is not.
    pub sample_ns: u64,
    /// Whether the scheduler must choose again at the next opportunity.
    pub resched: bool,
    /// By how much its ticks are later than those of pCPU 0, ns.
    pub skew_ns: u64,
    /// Time that interrupts and threads of the host took there.
    pub host_ns: u64,
    pub busy_ns: u64,
    pub idle_ns: u64,
    pub idle_since_ns: u64,
}

impl Pcpu {
    /// A pCPU whose ticks are that much later than those of pCPU 0.
    pub fn new(skew_ns: u64) -> Pcpu {
        Pcpu {
            current: None,
            since_ns: 0,
            due_ns: NEVER_NS,
            ipi_arrives_ns: NEVER_NS,
            tick_ns: NEVER_NS,
            borrow_until_ns: NEVER_NS,
            poll_at_ns: NEVER_NS,
            loan_ns: NEVER_NS,
            slice_ns: NEVER_NS,
            sample_ns: NEVER_NS,
            resched: false,
            skew_ns,
            host_ns: 0,
            busy_ns: 0,
            idle_ns: 0,
            idle_since_ns: 0,
        }
    }

    /// When a loan or grant there must be handled.
    pub(super) fn borrow_ns(&self) -> u64 {
        self.borrow_until_ns.min(self.poll_at_ns)
    }

    /// When the next event there is due.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        let timer_ns = self.slice_ns.min(self.sample_ns);
        let host_ns = self.tick_ns.min(self.borrow_ns()).min(timer_ns);
        self.due_ns.min(self.ipi_arrives_ns).min(host_ns)
    }
}

impl<O: Observer> World<O> {
    /// The speed of a pCPU, in `FULL_SPEED`ths: a hardware thread shares its core with a busy sibling.
    #[inline]
    pub(super) fn speed(&self, cpu: Cpu) -> u32 {
        let threads = self.topology.threads_per_core();
        if threads == 1 {
            return FULL_SPEED as u32;
        }
        let (first, _) = self.topology.around(cpu, Distance::Core);
        let mut siblings = (first.0..first.0 + threads).filter(|other| *other != cpu.0);
        if siblings.any(|other| self.cpus[other as usize].current.is_some()) {
            self.costs.smt_speed.clamp(1, FULL_SPEED as u32)
        } else {
            FULL_SPEED as u32
        }
    }

    /// A pCPU has become busy or idle: its siblings are accounted for at their old speed first, and planned again
    /// afterwards.
    pub(super) fn siblings(&mut self, cpu: Cpu, each: fn(&mut World<O>, Cpu)) {
        let threads = self.topology.threads_per_core();
        if threads == 1 {
            return;
        }
        let (first, _) = self.topology.around(cpu, Distance::Core);
        for other in (first.0..first.0 + threads).filter(|other| *other != cpu.0) {
            each(self, Cpu(other));
        }
    }
}

/// A task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Runnable,
    Sleeping,
}

/// A task of the host scheduler.
#[derive(Clone, Debug)]
pub(super) struct TaskState {
    /// The vCPU whose thread it is; `None`: it only uses CPU time.
    pub vcpu: Option<u32>,
    /// CPU time after which a thread of the host sleeps; `NEVER_NS` for vCPUs, and for threads that only use CPU time.
    pub left_ns: u64,
    /// The pCPU that it runs on.
    pub on: Option<Cpu>,
    pub state: State,
    pub since_ns: u64,
    pub running_ns: u64,
    pub runnable_ns: u64,
    pub sleeping_ns: u64,
    /// How often it began to wait for a pCPU, and the longest wait, ns.
    pub waits: u64,
    pub longest_wait_ns: u64,
}

impl TaskState {
    pub fn new(vcpu: Option<u32>) -> TaskState {
        TaskState {
            vcpu,
            left_ns: NEVER_NS,
            on: None,
            state: State::Sleeping,
            since_ns: 0,
            running_ns: 0,
            runnable_ns: 0,
            sleeping_ns: 0,
            waits: 0,
            longest_wait_ns: 0,
        }
    }

    /// Changes the state from now on.
    pub fn becomes(&mut self, state: State, now_ns: u64) {
        let elapsed_ns = now_ns - self.since_ns;
        match self.state {
            State::Running => self.running_ns += elapsed_ns,
            State::Runnable => {
                self.runnable_ns += elapsed_ns;
                self.longest_wait_ns = self.longest_wait_ns.max(elapsed_ns);
            }
            State::Sleeping => self.sleeping_ns += elapsed_ns,
        }
        if state == State::Runnable && self.state != State::Runnable {
            self.waits += 1;
        }
        self.state = state;
        self.since_ns = now_ns;
        debug_assert!(now_ns < NEVER_NS);
    }
}
