// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench ecs`: what eCS's annotation costs, in the shape of the paper's Table 4.

use unspin_lockbench::ecs;
use unspin_report::{Table, row};

use crate::{
    commands::bench::args::EcsArguments,
    terminal::{failure::Failure, interrupt, output, progress::Activity},
};

row! {
    "ecs", ["bench ecs"];
    /// A lock-unlock pair around nothing, as its thread sees it, with and without annotation; medians.
    struct EcsRow {
        /// The class of section: spinlock, `rwlock_read`, ...
        section: &'static str = ("section", Text),
        /// Threads that share the lock.
        threads: u32 = ("threads", Count),
        /// Without annotation; ns.
        off_ns: f64 = ("off", Nanoseconds),
        /// With it; ns.
        on_ns: f64 = ("on", Nanoseconds),
        /// What a pair of neighbouring runs differ by; ns.
        cost_ns: f64 = ("cost", Nanoseconds),
        /// Without it once more; ns.
        off_again_ns: f64 = ("off again", Nanoseconds),
        /// What the two without differ by; ns.
        null_cost_ns: f64 = ("null", Nanoseconds),
    }
}

/// Measures, and prints a row for each class and number of threads.
pub fn run(arguments: &EcsArguments) -> Result<(), Failure> {
    let interrupt = interrupt::flag()?;
    let activity = Activity::start("empty sections, annotated and not");
    let rows = ecs::run(
        &arguments.threads,
        arguments.repeat,
        arguments.pairs,
        &interrupt,
    )?;
    drop(activity);
    let title = "A lock-unlock pair around nothing, as its thread sees it";
    let rows = rows.into_iter().map(|row| EcsRow {
        section: row.name,
        threads: row.threads,
        off_ns: row.off_ns,
        on_ns: row.on_ns,
        cost_ns: row.cost_ns,
        off_again_ns: row.null_ns,
        null_cost_ns: row.null_cost_ns,
    });
    let mut document = output::document("bench ecs");
    document.note(
        "off, on, off again in turn and back; medians; cost: the median difference of neighbours",
    );
    document.table(Table::of(title, rows));
    output::print(&document, arguments.output)?;
    Ok(())
}
