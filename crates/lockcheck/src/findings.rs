// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an exploration found.

use std::collections::{BTreeMap, BTreeSet};

/// What can be wrong with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Two were inside at once that may not share.
    TwoInside,
    /// What somebody read inside is not what the one before had written; what an RCU reader read was reclaimed.
    Wrong,
    /// The lock touched a word that is not its own, or kicked who does not exist.
    Astray,
    /// Somebody entered before one that waited already when it asked, though the lock promises order.
    OutOfOrder,
    /// All had ended, and the lock was held, refused, or stuck.
    LeftLocked,
    /// Nobody can go on, save by a wake-up without cause, though somebody has not ended.
    Deadlock,
    /// No run can end from here, whatever is scheduled: if the host's answers are the wrong ones, and nobody wakes without cause.
    Hopeless,
}

impl Fault {
    /// All, by the word for each.
    pub const NAMES: [(&'static str, Fault); 7] = [
        ("two inside", Fault::TwoInside),
        ("wrong", Fault::Wrong),
        ("astray", Fault::Astray),
        ("out of order", Fault::OutOfOrder),
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

/// What all interleavings together showed.
#[derive(Debug, Default)]
pub struct Findings {
    /// Distinct states.
    pub states: usize,
    /// Ways from one to the next.
    pub transitions: usize,
    /// Executions: distinct ways from the start to an end, steps that no other thread can see not counted apart. Going round in
    /// circles (a time-out or a wake-up without cause after which all is as before) counts once, however often it is done.
    /// Stops at `u128::MAX`.
    pub executions: u128,
    /// States that lie on such circles.
    pub circling: usize,
    /// Every order in which the critical section was entered, by thread, over all complete runs; when asked for.
    pub orders: BTreeSet<Vec<u8>>,
    /// As `orders`, but relative to the requests: entry `i` is the place in the order of first accesses of the
    /// `i`-th thread to enter. First come, first served means 0, 1, 2, ...
    pub orders_by_request: BTreeSet<Vec<u8>>,
    /// What is wrong: how often, and the first schedule that shows it.
    pub faults: BTreeMap<Fault, (usize, String)>,
    /// Answers of trylock seen, over all runs.
    pub try_answers: BTreeSet<bool>,
    /// Answers of is_locked seen, over all runs.
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
