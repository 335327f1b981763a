// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin report`: a verdict on each VM of a recording, and one HTML page that shows why.

pub(crate) mod args;
mod papers;

use std::{collections::BTreeSet, path::Path};

use anyhow::Context;
use args::ReportArguments;
use unspin_analysis::{
    Source, read_symbols,
    verdict::{rows, study::study, words::verdicts},
    waits::spin_locations::Naming,
};
use unspin_page::{Moment, page, redact};
use unspin_report::{COMMIT, Document, Table};

use crate::terminal::{failure::Failure, output, progress::Activity};

/// Studies the recording, writes the page, prints the verdicts.
pub fn run(arguments: &ReportArguments) -> Result<(), Failure> {
    let Some(recording) = &arguments.recording else {
        return papers::run(arguments);
    };
    let naming = match &arguments.symbols {
        Some(path) => Naming::new(read_symbols(path)?),
        None => Naming::default(),
    };
    let mut source = Source::open(recording)?;
    let wanted: BTreeSet<u32> = arguments
        .vms
        .iter()
        .map(|vm| vm.number_in(&source.facts))
        .collect::<Result<_, _>>()?;
    let activity = Activity::start("reading the recording");
    let mut study = study(&mut source, naming);
    // Wakers are told by the names of their threads, so names go only now.
    if arguments.redact {
        redact(&mut source.facts);
    }
    let mut verdicts = verdicts(&source.facts, &study);
    if let Some(none) = wanted.iter().find(|vm| !study.vms.contains_key(vm)) {
        return Err(Failure::Usage(format!(
            "the recording has no events of a VM {none}"
        )));
    }
    if !wanted.is_empty() {
        verdicts.retain(|verdict| wanted.contains(&verdict.vm));
        study.explanation.vms.retain(|vm, _| wanted.contains(vm));
    }
    let moment = Moment::of(&mut source, &study, &verdicts);
    drop(activity);
    let page = page(&source, &study, &verdicts, moment.as_ref(), COMMIT);
    let page = page.map_err(|error| Failure::Failed(error.into()))?;
    write(&arguments.out, &page)?;
    let mut document = Document::new("report", source.machine());
    for verdict in &verdicts {
        document.note(verdict.sentence.clone());
    }
    match verdicts.is_empty() {
        true => document.note("No VM was seen in this recording."),
        false => document.table(Table::of(
            "Verdicts",
            rows::rows(&source.facts, &study, &verdicts),
        )),
    }
    for problem in &source.problems {
        document.note(problem.clone());
    }
    document.note(where_it_is(&arguments.out, &page));
    Ok(output::print(&document, arguments.output)?)
}

fn where_it_is(path: &Path, page: &str) -> String {
    let kilobytes = page.len().div_ceil(1_000);
    format!(
        "page: {} ({kilobytes} kB); open it with any browser",
        path.display()
    )
}

fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let written = unspin_page::write(path, page);
    Ok(written.with_context(|| format!("{}: the page cannot be written", path.display()))?)
}
