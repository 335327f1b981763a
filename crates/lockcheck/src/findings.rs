// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of an exploration.

use std::collections::{BTreeMap, BTreeSet};

/// The faults of a lock that an exploration detects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Two threads were inside at once that may not share the lock.
    TwoInside,
    /// A thread inside did not read what the previous one had written; or an RCU reader read reclaimed data.
    Wrong,
    /// The lock accessed a word that is not its own, or kicked a waiter that does not exist.
    Astray,
    /// A thread entered before one that was queued when it requested the lock, though the lock promises order.
    OutOfOrder,
    /// An unlock accessed the lock after another thread had got it, though the lock promises not to.
    AfterFree,
    /// After all threads had ended, the lock was held, its trylock failed, or a call did not return.
    LeftLocked,
    /// No thread can continue except by a spurious wake-up, though not all have ended.
    Deadlock,
    /// From some state no run can end, whatever is scheduled, if the host gives the wrong answers and no wake-up is
    /// spurious.
    Hopeless,
}

impl Fault {
    /// All faults, with their names.
    pub const NAMES: [(&'static str, Fault); 8] = [
        ("two inside", Fault::TwoInside),
        ("wrong", Fault::Wrong),
        ("astray", Fault::Astray),
        ("out of order", Fault::OutOfOrder),
        ("after free", Fault::AfterFree),
        ("left locked", Fault::LeftLocked),
        ("deadlock", Fault::Deadlock),
        ("hopeless", Fault::Hopeless),
    ];

    /// The fault of that name.
    pub fn from_name(name: &str) -> Option<Fault> {
        let known = Fault::NAMES.iter().find(|(word, _)| *word == name);
        known.map(|&(_, fault)| fault)
    }
}

/// The results of all interleavings together.
#[derive(Debug, Default)]
pub struct Findings {
    /// Distinct states.
    pub states: usize,
    /// Edges between states.
    pub transitions: usize,
    /// Executions: distinct paths from the start to an end. Steps that no other thread can see are not counted
    /// separately. A cycle (a time-out or a spurious wake-up after which the state is the same) counts once. Saturates
    /// at `u128::MAX`.
    pub executions: u128,
    /// States that are on such cycles.
    pub circling: usize,
    /// Every order in which threads entered the critical section, over all complete runs; only with `keeps_orders`.
    pub orders: BTreeSet<Vec<u8>>,
    /// As `orders`, but relative to the requests: entry `i` is the place in the order of first accesses of the
    /// `i`-th thread to enter. First come, first served means 0, 1, 2, ...
    pub orders_by_request: BTreeSet<Vec<u8>>,
    /// For each fault how often it was found, and the first schedule that shows it.
    pub faults: BTreeMap<Fault, (usize, String)>,
    /// Results of trylock, over all runs.
    pub try_answers: BTreeSet<bool>,
    /// Results of is_locked, over all runs.
    pub is_locked_answers: BTreeSet<bool>,
}

impl Findings {
    pub(crate) fn fault(&mut self, fault: Fault, schedule: impl FnOnce() -> String) {
        self.faults
            .entry(fault)
            .and_modify(|(count, _)| *count += 1)
            .or_insert_with(|| (1, schedule()));
    }

    /// # Panics
    /// When anything is wrong.
    pub fn assert_sound(&self) {
        assert!(self.faults.is_empty(), "{:#?}", self.faults);
    }
}
