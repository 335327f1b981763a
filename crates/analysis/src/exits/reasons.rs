// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons of pause-loop exits by location. Whether an IPI explains a wait shows only in all exits at its location
//! (`policy/classify/ple_reason.h`), so exits are counted with their evidence and judged at the end.

use std::collections::BTreeMap;

use unspin_policy::{
    IpiEvidence, Outcome, Reason, ReasonFacts, Symbol, Vector, Where, may_wait_for_answers,
};

/// Locations that are told apart in one VM; exits at later ones count as without location.
const LOCATIONS_MAX: usize = 4096;

/// What one exit shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Evidence {
    mode: u8,
    /// The spinner's own last IPI.
    pub ipi: IpiEvidence,
    /// Its vector.
    pub vector: Vector,
}

impl Evidence {
    /// Of an exit in that mode.
    pub fn new(mode: Option<Where>, ipi: IpiEvidence, vector: Vector) -> Evidence {
        let mode = match mode {
            None => 0,
            Some(Where::User) => 1,
            Some(Where::Kernel) => 2,
        };
        Evidence { mode, ipi, vector }
    }

    fn mode(self) -> Option<Where> {
        match self.mode {
            1 => Some(Where::User),
            2 => Some(Where::Kernel),
            _ => None,
        }
    }
}

/// Exits by outcome, in the order of [`Outcome::ALL`].
pub type ByOutcome = [u64; Outcome::ALL.len()];

/// Exits of one VM at one location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    exits: BTreeMap<Evidence, ByOutcome>,
}

/// All exits of one VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locations {
    by_location: BTreeMap<u64, Location>,
    elsewhere: Location,
}

/// Exits by reason and outcome: `[reason][outcome]`.
pub type Matrix = [ByOutcome; Reason::ALL.len()];

impl Location {
    fn add(&mut self, evidence: Evidence, outcome: Outcome) {
        self.exits.entry(evidence).or_default()[outcome as usize] += 1;
    }

    /// How many exits there are.
    pub fn exits(&self) -> u64 {
        self.exits.values().flatten().sum()
    }

    /// Exits that may wait for answers to an own IPI: with a receiver that has not run since, and without.
    fn may_wait(&self, ipi: IpiEvidence) -> u64 {
        self.sum(&|evidence| {
            evidence.ipi == ipi && may_wait_for_answers(evidence.ipi, evidence.vector)
        })
    }

    fn sum(&self, wanted: &dyn Fn(&Evidence) -> bool) -> u64 {
        let exits = self.exits.iter();
        let wanted = exits.filter(|(evidence, _)| wanted(evidence));
        wanted.flat_map(|(_, exits)| exits).sum()
    }

    /// Its exits by reason and outcome; `known`: that they are all at one place.
    fn matrix(&self, symbol: Option<Symbol>, known: bool) -> Matrix {
        let of_place = |exits: u64| if known { exits } else { 0 };
        let location_open = of_place(self.may_wait(IpiEvidence::Open));
        let location_answered = of_place(self.may_wait(IpiEvidence::Answered));
        let location_exits = of_place(self.sum(&|evidence| evidence.ipi != IpiEvidence::NotKnown));
        let mut matrix = Matrix::default();
        for (evidence, exits) in &self.exits {
            let facts = ReasonFacts {
                symbol,
                mode: evidence.mode(),
                ipi: evidence.ipi,
                vector: evidence.vector,
                location_open,
                location_answered,
                location_exits,
            };
            let row = &mut matrix[facts.reason() as usize];
            for (sum, exits) in row.iter_mut().zip(exits) {
                *sum += exits;
            }
        }
        matrix
    }
}

impl Locations {
    /// Counts an exit.
    pub fn add(&mut self, location: Option<u64>, evidence: Evidence, outcome: Outcome) {
        let full = self.by_location.len() >= LOCATIONS_MAX;
        let place = match location {
            Some(rip) if !full || self.by_location.contains_key(&rip) => {
                self.by_location.entry(rip).or_default()
            }
            _ => &mut self.elsewhere,
        };
        place.add(evidence, outcome);
    }

    /// Every location with its exits, the instruction pointer `None` for those without one.
    pub fn iter(&self) -> impl Iterator<Item = (Option<u64>, &Location)> {
        let known = self.by_location.iter();
        known
            .map(|(&rip, location)| (Some(rip), location))
            .chain([(None, &self.elsewhere)])
            .filter(|(_, location)| location.exits() > 0)
    }

    /// One location's exits by reason and outcome. `symbol`: what the function there is for.
    pub fn matrix_at(
        &self,
        location: Option<u64>,
        symbol: &dyn Fn(u64) -> Option<Symbol>,
    ) -> Matrix {
        match location {
            None => self.elsewhere.matrix(None, false),
            Some(rip) => self
                .by_location
                .get(&rip)
                .map_or(Matrix::default(), |place| place.matrix(symbol(rip), true)),
        }
    }

    /// All exits by reason and outcome.
    pub fn matrix(&self, symbol: &dyn Fn(u64) -> Option<Symbol>) -> Matrix {
        let mut sum = Matrix::default();
        for (location, _) in self.iter() {
            let part = self.matrix_at(location, symbol);
            for (row, more) in sum.iter_mut().zip(part) {
                for (cell, more) in row.iter_mut().zip(more) {
                    *cell += more;
                }
            }
        }
        sum
    }
}
