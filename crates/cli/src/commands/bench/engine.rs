// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench engine`: events a second of the lab's engine, and of other simulators on the same model.

use unspin_experiment::engine::{self, Baseline, BaselineKind, Contest, Contests, Rounds};
use unspin_report::{Cell, Column, Comparison, Table, Unit};

use crate::{
    commands::bench::args::EngineArguments,
    terminal::{failure::Failure, output, progress::Experiment},
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

/// Runs every engine in turn, round after round, and prints a row for each number of timers.
pub fn run(arguments: &EngineArguments) -> Result<(), Failure> {
    let progress = Experiment::new(false);
    let session = progress.session()?;
    let mut baselines = Vec::new();
    for kind in arguments.baselines.kinds() {
        baselines.push(Baseline::ready(kind, &session.interrupt)?);
    }
    let rounds = Rounds {
        timers: &arguments.timers,
        rounds: arguments.rounds,
        events: arguments.events,
        seed: arguments.seed,
    };
    let mut table = Table::new("engine", "", COLUMNS);
    for Contests { ours, theirs } in engine::run(&rounds, &baselines, &session)? {
        table.push(row(arguments, &ours, &baselines, &theirs));
    }
    let mut document = output::document("bench engine");
    document.note("Timers that set themselves again after 1 to 2^20 ns; best of each engine's rounds, ratios in pairs.");
    for baseline in &baselines {
        document.note(format!("{}, on one thread.", baseline.version()));
    }
    document.table(table);
    output::print(&document, arguments.output)?;
    Ok(())
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
