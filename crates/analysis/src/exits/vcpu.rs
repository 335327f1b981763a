// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each vCPU of a VM is doing, rebuilt from switches and wake-ups as they come, and whom its IPIs still wait for.

use std::collections::BTreeMap;

use unspin_events::{GuestMode, What};
use unspin_policy::{Candidate, CandidateState, Where};

/// An IPI of a vCPU to a receiver that was off its pCPU and has not run since (ruling 32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenIpi {
    /// When it was sent.
    pub sent_ns: u64,
    /// Whether the receiver is known to have been off its pCPU.
    pub certain: bool,
}

/// One vCPU.
#[derive(Clone, Debug, Default)]
pub struct Vcpu {
    state: State,
    /// When it last got a pCPU; 0: not seen.
    last_in_ns: u64,
    /// CPU time is counted up to here while it runs.
    counted_ns: u64,
    open: BTreeMap<u16, OpenIpi>,
    /// Whether it has run since events of it were seen without a gap: no older IPI waits for it.
    has_run: bool,
}

/// What a vCPU is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not known.
    #[default]
    Unknown,
    /// On a pCPU.
    Running,
    /// Preempted, or it yielded; where it was, if known.
    Preempted(Option<Where>),
    /// Woken from sleep, and not run since.
    Woken,
    /// Asleep: halted, or waiting in user space.
    Halted,
}

/// The guest's mode, in the words of policy/.
pub fn place(mode: Option<GuestMode>) -> Option<Where> {
    mode.map(|mode| match mode {
        GuestMode::User => Where::User,
        GuestMode::Kernel => Where::Kernel,
    })
}

impl Vcpu {
    /// What it is doing.
    pub fn state(&self) -> State {
        self.state
    }

    /// When it last got a pCPU; 0: not seen.
    pub fn last_in_ns(&self) -> u64 {
        self.last_in_ns
    }

    /// What `what`, an event of this vCPU's own thread, makes of it. Returns the CPU time that it adds, nanoseconds.
    pub fn step(&mut self, time_ns: u64, what: &What) -> u64 {
        let state = match *what {
            What::SwitchIn { .. } => {
                self.last_in_ns = time_ns;
                State::Running
            }
            What::SwitchOut {
                runnable: true,
                mode,
                ..
            } => State::Preempted(place(mode)),
            What::SwitchOut {
                runnable: false, ..
            } => State::Halted,
            What::SchedWakeup { .. } => State::Woken,
            // All others happen on the vCPU's own thread, which therefore runs.
            _ if self.state == State::Running => return 0,
            _ => State::Running,
        };
        let ran_ns = self.count(time_ns);
        self.has_run |= state != State::Woken;
        if state == State::Running {
            self.counted_ns = time_ns;
        }
        self.state = state;
        ran_ns
    }

    /// CPU time since it was last counted, nanoseconds; it is counted now.
    pub fn count(&mut self, time_ns: u64) -> u64 {
        if self.state != State::Running {
            return 0;
        }
        let ran_ns = time_ns.saturating_sub(self.counted_ns);
        self.counted_ns = time_ns;
        ran_ns
    }

    /// Events are missing: nothing is known any more.
    pub fn forget(&mut self) {
        *self = Vcpu::default();
    }

    /// Remembers an IPI that this vCPU sent to a vCPU in that state.
    pub fn sent(&mut self, time_ns: u64, receiver: u16, state: State) {
        if state != State::Running {
            let certain = state != State::Unknown;
            self.open.entry(receiver).or_insert(OpenIpi {
                sent_ns: time_ns,
                certain,
            });
        }
    }

    /// That receiver runs: it has got the IPI.
    pub fn received(&mut self, receiver: u16) {
        self.open.remove(&receiver);
    }

    /// Whether an IPI of this vCPU to `number`, who is `receiver`, waits for it to run.
    pub fn waits_for(&self, number: u16, receiver: &Vcpu) -> Option<bool> {
        match self.open.get(&number) {
            Some(open) => open.certain.then_some(true),
            None => receiver.has_run.then_some(false),
        }
    }

    /// Whether any IPI of this vCPU waits for its receiver to run.
    pub fn waits(&self) -> bool {
        self.open.values().any(|open| open.certain)
    }

    /// As one whom KVM may boost, for a spinner whose IPI `receiver` tells of.
    pub fn candidate(&self, receiver: Option<bool>) -> Candidate {
        let (state, mode) = match self.state {
            State::Unknown => (CandidateState::Unknown, None),
            State::Running => (CandidateState::Running, None),
            State::Preempted(mode) => (CandidateState::Preempted, mode),
            State::Woken => (CandidateState::Woken, None),
            State::Halted => (CandidateState::Halted, None),
        };
        Candidate {
            state,
            mode,
            receiver,
            tried: Some(false),
        }
    }
}
