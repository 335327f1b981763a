// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench engine`: events a second of the lab's engine, and of other simulators on the same model.

use unspin_experiment::engine::{self, Baseline, Rounds, row};
use unspin_report::Table;

use crate::{
    commands::bench::args::EngineArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

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
    let contests = engine::run(&rounds, &baselines, &session)?;
    let mut document = output::document("bench engine");
    document.note("Timers that set themselves again after 1 to 2^20 ns; best of each engine's rounds, ratios in pairs.");
    for baseline in &baselines {
        document.note(format!("{}, on one thread.", baseline.version()));
    }
    let rows = contests.iter().map(|of| row(&rounds, &baselines, of));
    document.table(Table::of("", rows));
    output::print(&document, arguments.output)?;
    Ok(())
}
