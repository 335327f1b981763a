// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench engine`: events a second of the lab's engine, and of other simulators on the same model.

use std::{sync::atomic::Ordering, time::Instant};

use unspin_lab::engine::timers::{DELAY_MEAN_NS, Expiries, Timers};
use unspin_report::{Cell, Column, Comparison, Table, Unit};

use crate::{
    commands::bench::{
        args::{BaselineKind, EngineArguments},
        engine_baselines::Baseline,
    },
    terminal::{failure::Failure, interrupt, output, progress::Steps},
};

const COLUMNS: &[Column] = &[
    Column::new("timers", "timers", Unit::Count),
    Column::json_only("rounds", Unit::Count),
    Column::json_only("seed", Unit::Count),
    Column::json_only("events", Unit::Count),
    Column::new("events_per_second", "events/s", Unit::Count),
    Column::new("event_ns", "ns each", Unit::Ratio),
    Column::new("simpy_events_per_second", "SimPy", Unit::Count),
    Column::new("ratio_to_simpy", "ratio", Unit::Ratio),
    Column::new("ratio_to_simpy_low", "95 % from", Unit::Ratio),
    Column::new("ratio_to_simpy_high", "to", Unit::Ratio),
    Column::new("nexosim_events_per_second", "NeXosim", Unit::Count),
    Column::new("ratio_to_nexosim", "ratio", Unit::Ratio),
    Column::new("ratio_to_nexosim_low", "95 % from", Unit::Ratio),
    Column::new("ratio_to_nexosim_high", "to", Unit::Ratio),
    Column::json_only("simpy", Unit::Text),
    Column::json_only("nexosim", Unit::Text),
];

/// A baseline gets so many times fewer events: it takes that much longer for each.
const BASELINE_SHARE: u64 = 40;

/// One engine with one number of timers.
struct Contest {
    timers: u32,
    seed: u64,
    horizon_ns: u64,
    /// By round.
    rates: Vec<f64>,
    events: u64,
}

/// Runs every engine in turn, round after round, and prints a row for each number of timers.
pub fn run(arguments: &EngineArguments) -> Result<(), Failure> {
    let interrupt = interrupt::flag()?;
    let mut baselines = Vec::new();
    for kind in arguments.baselines.kinds() {
        baselines.push(Baseline::ready(kind)?);
    }
    let steps = arguments.timers.len() * arguments.rounds as usize * (1 + baselines.len());
    let steps = Steps::start(steps, "measuring");
    let mut done = 0;
    let mut table = Table::new("engine", "", COLUMNS);
    for &timers in &arguments.timers {
        let mut ours = Contest::new(timers, arguments.seed, arguments.events);
        let theirs = || {
            Contest::new(
                timers,
                arguments.seed,
                (arguments.events / BASELINE_SHARE).max(1),
            )
        };
        let mut theirs: Vec<Contest> = baselines.iter().map(|_| theirs()).collect();
        for round in 0..arguments.rounds {
            // There and back again: nobody is always first.
            for place in 0..=baselines.len() {
                let place = if round % 2 == 0 {
                    place
                } else {
                    baselines.len() - place
                };
                if interrupt.load(Ordering::Relaxed) {
                    return Err(Failure::Interrupted);
                }
                match place.checked_sub(1) {
                    None => ours.run_ours(),
                    Some(baseline) => theirs[baseline].run_baseline(&baselines[baseline])?,
                }
                done += 1;
                steps.done(done);
            }
        }
        table.push(row(arguments, &ours, &baselines, &theirs));
    }
    drop(steps);
    let mut document = output::document("bench engine");
    document.note("Timers that set themselves again after 1 to 2^20 ns; best of each engine's rounds, ratios in pairs.");
    for baseline in &baselines {
        document.note(format!("{}, on one thread.", baseline.version()));
    }
    document.table(table);
    output::print(&document, arguments.output)?;
    Ok(())
}

impl Contest {
    /// About so many events.
    fn new(timers: u32, seed: u64, events: u64) -> Contest {
        Contest {
            timers,
            seed,
            horizon_ns: events.saturating_mul(DELAY_MEAN_NS) / u64::from(timers),
            rates: Vec::new(),
            events: 0,
        }
    }

    fn run_ours(&mut self) {
        let mut timers = Timers::new(self.timers, self.seed);
        let begin = Instant::now();
        let Expiries { events, .. } = std::hint::black_box(timers.run(self.horizon_ns));
        self.rates
            .push(events as f64 / begin.elapsed().as_secs_f64());
        self.events = events;
    }

    /// Fails unless the baseline comes to our events and our checksum.
    fn run_baseline(&mut self, baseline: &Baseline) -> Result<(), Failure> {
        let (theirs, seconds) = baseline.run(self.timers, self.horizon_ns, self.seed)?;
        let ours = Timers::new(self.timers, self.seed).run(self.horizon_ns);
        if theirs != ours {
            let what = format!(
                "{} came to {theirs:?}, unspin to {ours:?}",
                baseline.version()
            );
            return Err(Failure::Failed(anyhow::anyhow!(what)));
        }
        self.rates.push(theirs.events as f64 / seconds);
        self.events = theirs.events;
        Ok(())
    }

    fn best(&self) -> f64 {
        self.rates.iter().copied().fold(f64::NAN, f64::max)
    }
}

fn row(
    arguments: &EngineArguments,
    ours: &Contest,
    baselines: &[Baseline],
    theirs: &[Contest],
) -> Vec<Cell> {
    let mut cells = vec![
        ours.timers.into(),
        arguments.rounds.into(),
        arguments.seed.into(),
        ours.events.into(),
        ours.best().into(),
        (1e9 / ours.best()).into(),
    ];
    let mut versions = Vec::new();
    for kind in BaselineKind::ALL {
        let there = baselines
            .iter()
            .position(|baseline| baseline.kind() == kind);
        versions.push(there.map(|place| baselines[place].version()).into());
        match there {
            Some(place) => cells.extend(ratio(ours, &theirs[place])),
            None => cells.extend([const { Cell::Unknown }; 4]),
        }
    }
    cells.extend(versions);
    cells
}

/// The baseline's best rate, our ratio to it and the bounds; one round has no bounds.
fn ratio(ours: &Contest, theirs: &Contest) -> [Cell; 4] {
    let pairs: Vec<(f64, f64)> = ours
        .rates
        .iter()
        .copied()
        .zip(theirs.rates.iter().copied())
        .collect();
    let comparison = Comparison::of(&pairs);
    let bound = |bound: f64| (bound.is_finite() && bound > 0.0).then_some(bound);
    [
        theirs.best().into(),
        comparison.map(|comparison| comparison.ratio).into(),
        comparison
            .and_then(|comparison| bound(comparison.interval.low))
            .into(),
        comparison
            .and_then(|comparison| bound(comparison.interval.high))
            .into(),
    ]
}
