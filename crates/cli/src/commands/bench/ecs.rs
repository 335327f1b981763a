// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench ecs`: what eCS's annotation costs, in the shape of the paper's Table 4.

use unspin_lockbench::ecs;
use unspin_report::{Column, Table, Unit};

use crate::{
    commands::bench::args::EcsArguments,
    terminal::{failure::Failure, interrupt, output, progress::Activity},
};

const COLUMNS: &[Column] = &[
    Column::new("section", "section", Unit::Text),
    Column::new("threads", "threads", Unit::Count),
    Column::new("off_ns", "off", Unit::Nanoseconds),
    Column::new("on_ns", "on", Unit::Nanoseconds),
    Column::new("cost_ns", "cost", Unit::Nanoseconds),
    Column::new("off_again_ns", "off again", Unit::Nanoseconds),
    Column::new("null_cost_ns", "null", Unit::Nanoseconds),
];

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
    let mut table = Table::new("ecs", title, COLUMNS);
    for row in rows {
        table.push(vec![
            row.name.into(),
            row.threads.into(),
            row.off_ns.into(),
            row.on_ns.into(),
            row.cost_ns.into(),
            row.null_ns.into(),
            row.null_cost_ns.into(),
        ]);
    }
    let mut document = output::document("bench ecs");
    document.note(
        "off, on, off again in turn and back; medians; cost: the median difference of neighbours",
    );
    document.table(table);
    output::print(&document, arguments.output)?;
    Ok(())
}
