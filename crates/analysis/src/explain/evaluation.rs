// SPDX-License-Identifier: MIT OR Apache-2.0
//! How good an explanation is: cause against true cause, wait by wait.

use std::collections::BTreeMap;

use crate::explain::{
    cause::{Cause, CauseTimes},
    ground_truth::{Slice, TrueWait},
};

/// Explained against true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// `[true][explained]`, waits; nothing explained counts as unknown.
    pub confusion: [[u64; Cause::ALL.len()]; Cause::ALL.len()],
    /// SpinTime time of all waits, truly.
    pub true_spin_ns: u64,
    /// And as explained.
    pub explained_spin_ns: u64,
}

impl Evaluation {
    /// Compares; waits that spun for less than `minimum_ns` do not count, but for the sums of spin time. A lead of less than
    /// `margin_ns` leaves a wait unexplained.
    pub fn new(
        waits: &[TrueWait],
        slices: &[Slice],
        minimum_ns: u64,
        margin_ns: u64,
    ) -> Evaluation {
        let mut evaluation = Evaluation::default();
        let mut by_vcpu: BTreeMap<u16, Vec<&Slice>> = BTreeMap::new();
        for slice in slices {
            evaluation.explained_spin_ns += slice.end_ns - slice.begin_ns;
            by_vcpu.entry(slice.vcpu).or_default().push(slice);
        }
        for slices in by_vcpu.values_mut() {
            slices.sort_by_key(|slice| slice.begin_ns);
        }
        for wait in waits {
            evaluation.true_spin_ns += wait.spin_time.total();
            let Some(ground_truth) = wait
                .cause()
                .filter(|_| wait.spin_time.total() >= minimum_ns)
            else {
                continue;
            };
            let slices = by_vcpu.get(&wait.vcpu).map_or(&[][..], |slices| slices);
            let explained = explained(wait, slices)
                .certain(margin_ns)
                .unwrap_or(Cause::Unknown);
            evaluation.confusion[ground_truth.index()][explained.index()] += 1;
        }
        evaluation
    }

    /// Adds another VM's.
    pub fn merge(&mut self, other: &Evaluation) {
        let mine = self.confusion.iter_mut().flatten();
        for (mine, theirs) in mine.zip(other.confusion.iter().flatten()) {
            *mine += theirs;
        }
        self.true_spin_ns += other.true_spin_ns;
        self.explained_spin_ns += other.explained_spin_ns;
    }

    /// All waits that count.
    pub fn waits(&self) -> u64 {
        self.confusion.iter().flatten().sum()
    }

    /// Of them, those with a cause.
    pub fn attributed(&self) -> u64 {
        let unknown: u64 = self
            .confusion
            .iter()
            .map(|row| row[Cause::Unknown.index()])
            .sum();
        self.waits() - unknown
    }

    /// Of them, those with the true one.
    pub fn right(&self) -> u64 {
        Cause::ALL
            .iter()
            .filter(|&&cause| cause != Cause::Unknown)
            .map(|cause| self.confusion[cause.index()][cause.index()])
            .sum()
    }

    /// Waits of the most frequent true cause: what always guessing that one gets right.
    pub fn always_majority(&self) -> u64 {
        self.confusion
            .iter()
            .map(|row| row.iter().sum())
            .max()
            .unwrap_or(0)
    }
}

/// Explained time within that wait.
pub fn explained(wait: &TrueWait, slices: &[&Slice]) -> CauseTimes {
    let mut times = CauseTimes::default();
    let first = slices.partition_point(|slice| slice.end_ns <= wait.begin_ns);
    for slice in slices[first..]
        .iter()
        .take_while(|slice| slice.begin_ns < wait.end_ns)
    {
        let begin_ns = slice.begin_ns.max(wait.begin_ns);
        times.add(
            slice.cause,
            slice.end_ns.min(wait.end_ns).saturating_sub(begin_ns),
        );
    }
    times
}
