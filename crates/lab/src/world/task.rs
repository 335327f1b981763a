// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host schedules, and how its time is accounted: running + runnable + halted is the wall time.

use crate::{engine::NEVER_NS, ids::Cpu};

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Runnable,
    Sleeping,
}

/// A task of the host.
#[derive(Clone, Debug)]
pub(super) struct TaskState {
    /// The vCPU that it is the thread of; `None`: it only uses CPU time.
    pub vcpu: Option<u32>,

    /// The pCPU that it runs on.
    pub on: Option<Cpu>,
    pub state: State,
    pub since_ns: u64,
    pub running_ns: u64,
    pub runnable_ns: u64,
    pub sleeping_ns: u64,
    /// Times that it began to wait for a pCPU, and the longest wait, ns.
    pub waits: u64,
    pub longest_wait_ns: u64,
}

impl TaskState {
    pub fn new(vcpu: Option<u32>) -> TaskState {
        TaskState {
            vcpu,
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

    /// From now on it is there.
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
