// SPDX-License-Identifier: MIT OR Apache-2.0
//! The row of each number of timers.

use unspin_report::{Comparison, row};

use super::{Baseline, BaselineKind, Contest, Contests, Rounds};

row! {
    "engine", ["bench engine"];
    /// The lab's engine and the baselines with one number of timers. Rates are those of the best round, ratios are of pairs of
    /// rounds.
    pub struct EngineRow {
        /// Timers.
        timers: u32 = ("timers", Count),
        /// Rounds.
        rounds: u32,
        /// From which all delays were drawn.
        seed: u64,
        /// Events of the lab's engine in a round.
        events: u64,
        /// Its events per second.
        events_per_second: f64 = ("events/s", Count),
        /// Time of an event; ns.
        event_ns: f64 = ("ns each", Ratio),
        /// SimPy's events per second; null, as all of it: not asked for.
        simpy_events_per_second: Option<f64> = ("SimPy", Count),
        /// The lab's engine by SimPy.
        ratio_to_simpy: Option<f64> = ("ratio", Ratio),
        /// Lower bound of its 95 % interval.
        ratio_to_simpy_low: Option<f64> = ("95 % from", Ratio),
        /// Upper bound.
        ratio_to_simpy_high: Option<f64> = ("to", Ratio),
        /// NeXosim's events per second; null, as all of it: not asked for.
        nexosim_events_per_second: Option<f64> = ("NeXosim", Count),
        /// The lab's engine by NeXosim.
        ratio_to_nexosim: Option<f64> = ("ratio", Ratio),
        /// Lower bound of its 95 % interval.
        ratio_to_nexosim_low: Option<f64> = ("95 % from", Ratio),
        /// Upper bound.
        ratio_to_nexosim_high: Option<f64> = ("to", Ratio),
        /// SimPy's version.
        simpy: Option<String>,
        /// NeXosim's version.
        nexosim: Option<String>,
    }
}

/// A baseline beside the lab's engine.
#[derive(Default)]
struct Beside {
    version: Option<String>,
    events_per_second: Option<f64>,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// The row of these contests.
pub fn row(what: &Rounds<'_>, baselines: &[Baseline], of: &Contests) -> EngineRow {
    let ours = &of.ours;
    let beside = |kind| {
        let mut found = baselines.iter().zip(&of.theirs);
        let found = found.find(|(baseline, _)| baseline.kind() == kind);
        found.map_or(Beside::default(), |(baseline, theirs)| Beside {
            version: Some(baseline.version().to_string()),
            ..Beside::of(ours, theirs)
        })
    };
    let simpy = beside(BaselineKind::Simpy);
    let nexosim = beside(BaselineKind::Nexosim);
    EngineRow {
        timers: ours.timers,
        rounds: what.rounds,
        seed: what.seed,
        events: ours.events,
        events_per_second: ours.best(),
        event_ns: 1e9 / ours.best(),
        simpy_events_per_second: simpy.events_per_second,
        ratio_to_simpy: simpy.ratio,
        ratio_to_simpy_low: simpy.low,
        ratio_to_simpy_high: simpy.high,
        nexosim_events_per_second: nexosim.events_per_second,
        ratio_to_nexosim: nexosim.ratio,
        ratio_to_nexosim_low: nexosim.low,
        ratio_to_nexosim_high: nexosim.high,
        simpy: simpy.version,
        nexosim: nexosim.version,
    }
}

impl Beside {
    /// The baseline's best rate, our ratio to it and the bounds; one round has no bounds.
    fn of(ours: &Contest, theirs: &Contest) -> Beside {
        let pairs = ours.rates.iter().copied();
        let pairs: Vec<(f64, f64)> = pairs.zip(theirs.rates.iter().copied()).collect();
        let comparison = Comparison::of(&pairs);
        let bound = |bound: f64| (bound.is_finite() && bound > 0.0).then_some(bound);
        Beside {
            version: None,
            events_per_second: Some(theirs.best()),
            ratio: comparison.map(|comparison| comparison.ratio),
            low: comparison.and_then(|comparison| bound(comparison.interval.low)),
            high: comparison.and_then(|comparison| bound(comparison.interval.high)),
        }
    }
}
