// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers of several test files.
#![allow(dead_code, reason = "no test file uses all of it")]

use std::time::Instant;

use unspin_abi::LockKind;
use unspin_lockcheck::{
    explore::{Exploration, Findings},
    script::{Locks, RunStates, Setting},
};

/// The lock of that name.
pub fn kind(name: &str) -> LockKind {
    LockKind::from_name(name).expect("abi/guest/lock_kinds.h has it")
}

/// Words of a ticket lock and of a preemptable ticket lock, in order of their structures.
pub const TAIL: usize = 0;
/// Grants so far.
pub const HEAD: usize = 1;
/// Of the preemptable ticket lock only, as [`TAU`].
pub const TAKEN: usize = 2;
/// Spins per place in the queue.
pub const TAU: usize = 3;

/// Random numbers for tests: splitmix64, any seed.
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `limit - 1`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// True once in `of` times on average.
    pub fn once_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

/// A case to explore: a lock by name, or `rcu`, and its setting.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// The build.
    pub locks: Locks,
    /// Its word in `abi/guest/lock_kinds.h`, or `rcu`.
    pub name: &'static str,
    /// What the host answers.
    pub run_states: RunStates,
    /// Whether order is checked where the lock promises it.
    pub in_order: bool,
    /// More states than these are an error; about 160 bytes each.
    pub states_max: usize,
}

impl Proof {
    /// The unchanged lock, with every answer of the host.
    pub fn of(name: &'static str) -> Proof {
        Proof {
            locks: Locks::as_they_are(),
            name,
            run_states: RunStates::Any,
            in_order: true,
            states_max: 4_000_000,
        }
    }

    /// Explores every interleaving of these programs and prints a row of benchmarks/lock-interleavings.
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
        exploration.states_max = self.states_max;
        exploration.is_fifo = self.in_order && kind.is_some_and(LockKind::is_in_order);
        // An unlock of a lock that no thread holds may access it at any time.
        let unlocks_at_will = programs.iter().any(|program| program.contains('U'));
        exploration.frees_last = !unlocks_at_will && kind.is_some_and(LockKind::frees_last);
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
