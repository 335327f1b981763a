// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin report --papers`: one page of what the papers claim and what was measured of it.

use unspin_page::papers::page;
use unspin_papers::{Papers, page::Counts};
use unspin_report::{COMMIT, Table};

use super::{args::ReportArguments, where_it_is, write};
use crate::{
    commands::paper,
    terminal::{failure::Failure, output},
};

/// Reads the tree, writes the page, prints the measurements.
pub(super) fn run(arguments: &ReportArguments) -> Result<(), Failure> {
    let root = paper::root(arguments.tree.as_deref())?;
    let papers = Papers::load(&root)?;
    let page = page(&papers, COMMIT).map_err(|error| Failure::Failed(error.into()))?;
    write(&arguments.out, &page)?;
    let heat = papers.heat_map()?;
    let mut document = output::document("report");
    document.table(Table::of("", heat.rows()));
    document.note(Counts::of(&papers.judged(|_| true)?).text());
    for map in heat.parts() {
        let measured = map.rows.iter().flat_map(|row| &row.cells).flatten();
        document.note(format!(
            "{}: {} loads, {} remedies, {} of {} cells measured",
            map.part.title(),
            map.rows.len(),
            map.remedies.len(),
            measured.count(),
            map.rows.len() * map.remedies.len()
        ));
    }
    document.note(where_it_is(&arguments.out, &page));
    Ok(output::print(&document, arguments.output)?)
}
