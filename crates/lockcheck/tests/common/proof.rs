// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explores one lock with one set of programs and prints what that was.
#![allow(dead_code, reason = "no test file uses all of it")]

use std::time::Instant;

use unspin_abi::LockKind;
use unspin_lockcheck::{
    explore::{Exploration, Findings},
    script::{Locks, RunStates, Setting},
};

/// What is explored: a lock by name or `rcu`, and how.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// The build.
    pub locks: Locks,
    /// Its word in `abi/guest/lock_kinds.h`, or `rcu`.
    pub name: &'static str,
    /// What the host says.
    pub run_states: RunStates,
    /// Whether order is checked where the lock promises it.
    pub in_order: bool,
}

impl Proof {
    /// As it is, with a host that says anything.
    pub fn of(name: &'static str) -> Proof {
        Proof {
            locks: Locks::as_they_are(),
            name,
            run_states: RunStates::Any,
            in_order: true,
        }
    }

    /// Every interleaving of these programs: sound, and printed as a row of benchmarks/lock-interleavings.
    ///
    /// # Panics
    /// When anything is wrong.
    pub fn run(self, programs: &[&str]) -> Findings {
        let kind = LockKind::from_name(self.name);
        let mut exploration = Exploration::of(Setting {
            locks: self.locks,
            kind: kind.map_or(Setting::RCU, LockKind::number),
            programs,
            store_buffers: true,
            looks: true,
            run_states: self.run_states,
        });
        exploration.is_fifo = self.in_order && kind.is_some_and(LockKind::is_in_order);
        let start = Instant::now();
        let findings = exploration.run();
        let executions = match findings.executions {
            u128::MAX => "2^128 or more".to_owned(),
            count if count > 999_999_999 => format!("{:.2e}", count as f64),
            count => count.to_string(),
        };
        println!(
            "| {} | {} | {:?}, run_states {:?} | {} | {} | {executions} | {} | {:.2?} |",
            self.name,
            programs.join(" "),
            self.locks,
            self.run_states,
            findings.states,
            findings.transitions,
            findings.circling,
            start.elapsed()
        );
        assert!(
            findings.faults.is_empty(),
            "{self:?} {programs:?}: {:#?}",
            findings.faults
        );
        findings
    }
}
