// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an exploration found.

use std::collections::BTreeSet;

/// What all interleavings together showed.
#[derive(Debug, Default)]
pub struct Findings {
    /// Distinct states.
    pub states: usize,
    /// Every order in which the critical section was entered, by thread, over all complete runs.
    pub orders: BTreeSet<Vec<u8>>,
    /// As `orders`, but relative to the requests: entry `i` is the place in the order of first accesses of the
    /// `i`-th thread to enter. First come, first served means 0, 1, 2, ...
    pub orders_by_request: BTreeSet<Vec<u8>>,
    /// Interleavings in which two were inside at once, as the threads' numbers step by step.
    pub violations: Vec<Vec<u8>>,
    /// States in which nobody can go on though somebody has not ended, as the steps that lead there.
    pub deadlocks: Vec<Vec<u8>>,
    /// States from which no complete run can be reached any more (deadlocks among them).
    pub hopeless: usize,
    /// Answers of trylock seen, over all runs.
    pub try_answers: BTreeSet<bool>,
    /// Answers of is_locked seen, over all runs.
    pub is_locked_answers: BTreeSet<bool>,
}

impl Findings {
    /// # Panics
    /// When two were inside at once, or some run cannot end.
    pub fn assert_sound(&self) {
        assert!(
            self.violations.is_empty(),
            "two inside: {:?}",
            self.violations[0]
        );
        assert!(
            self.deadlocks.is_empty(),
            "deadlock after {:?}",
            self.deadlocks[0]
        );
        assert_eq!(self.hopeless, 0, "states from which no run can end");
    }
}
