// SPDX-License-Identifier: MIT OR Apache-2.0
//! A claim of a paper, with its numbers.

use serde::Deserialize;

use crate::source::{Sources, World};

/// What kind of claim it is (docs/papers/README.md).
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A baseline: a model may be fitted to it.
    B,
    /// A figure with a remedy: it may only be predicted.
    M,
    /// A definition.
    D,
    /// A limitation that the authors state.
    L,
}

/// What a number of a claim counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// One figure divided by another; 1: no effect.
    Ratio,
    /// The same in percent, less 100; 0: no effect.
    ChangePercent,
    /// A share of 100.
    Percent,
    /// A rate.
    PerSecond,
    /// A time.
    Nanoseconds,
    /// A number of things.
    Count,
}

impl Unit {
    /// The value that would be no effect, if one is.
    pub fn no_effect(self) -> Option<f64> {
        match self {
            Unit::Ratio => Some(1.0),
            Unit::ChangePercent => Some(0.0),
            Unit::Percent | Unit::PerSecond | Unit::Nanoseconds | Unit::Count => None,
        }
    }

    /// As the files of claims and `--json` spell it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Ratio => "ratio",
            Unit::ChangePercent => "change_percent",
            Unit::Percent => "percent",
            Unit::PerSecond => "per_second",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Count => "count",
        }
    }

    /// A value as people see it.
    pub fn text(self, value: f64) -> String {
        match self {
            Unit::Ratio => format!("{value:.2}"),
            Unit::ChangePercent => format!("{value:+.1} %"),
            Unit::Percent if value.abs() < 0.1 && value != 0.0 => format!("{value:.3} %"),
            Unit::Percent => format!("{value:.1} %"),
            Unit::PerSecond | Unit::Count => format!("{value:.0}"),
            Unit::Nanoseconds => format!("{value:.1} ns"),
        }
    }
}

/// What the paper says of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// Words alone.
    Words,
    /// A number (both bounds are the same), a range, or a bound (the other one is infinite).
    Range {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// That figures are in this order, the least first; their names are in [`Figure::what`].
    Ascending,
}

impl Expected {
    /// As people see it.
    pub fn text(self, unit: Unit) -> String {
        match self {
            Expected::Words => String::new(),
            Expected::Ascending => "in this order".into(),
            Expected::Range { low, high } if low == high => unit.text(low),
            Expected::Range { low, high } if low.is_infinite() => {
                format!("at most {}", unit.text(high))
            }
            Expected::Range { low, high } if high.is_infinite() => {
                format!("at least {}", unit.text(low))
            }
            Expected::Range { low, high } => format!("{} to {}", unit.text(low), unit.text(high)),
        }
    }
}

/// One number of a claim, or the whole of one without numbers.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is of; empty when the claim's text says it.
    pub what: String,
    /// What the paper says.
    pub expected: Expected,
    /// What it counts.
    pub unit: Unit,
    /// What it is compared with; empty for a figure that stands alone.
    pub of: String,
    /// Figures on the same side of it are of one kind; [`Unit::no_effect`] when absent.
    pub side: Option<f64>,
    /// A difference that is none, in the figure's unit: what the paper's rounding hides.
    pub tolerance: f64,
    /// Whether a parameter of its scenario was fitted to it; else it is predicted.
    pub fitted: bool,
    /// Where the figures beside it come from.
    pub sources: Sources,
    /// Why it disagrees, as far as that is known; by hand.
    pub reason: String,
}

/// A claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name, which code and documents cite: V09.
    pub id: String,
    /// The paper's key.
    pub paper: String,
    /// Where in the paper.
    pub section: String,
    /// Its class.
    pub class: Class,
    /// What it says.
    pub text: String,
    /// Its numbers, or one figure of words; never empty.
    pub figures: Vec<Figure>,
}

impl Figure {
    /// The value between two kinds of figures.
    pub fn between_kinds(&self) -> Option<f64> {
        self.side.or(self.unit.no_effect())
    }

    /// `fitted` or `predicted`; nothing for words, rules, and where no lab is asked.
    pub fn fit(&self) -> &'static str {
        let lab = self.sources.of(World::Lab).is_run();
        match (lab, self.fitted) {
            (true, true) => "fitted",
            (true, false) => "predicted",
            (false, _) => "",
        }
    }
}
