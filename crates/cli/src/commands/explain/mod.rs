// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin explain`: who lost CPU time to spinning, for whom, and who ran instead. From a recording alone.

pub(crate) mod args;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::Context;
use args::ExplainArguments;
use unspin_analysis::{
    Source,
    explain::{
        attribution::{EVENTS_MAX, Explanation, Options, explain},
        rows,
        timeline_svg::Picture,
        words,
    },
    read_symbols,
    waits::spin_locations::Naming,
};
use unspin_report::{Document, Table};

use crate::terminal::{failure::Failure, output};

/// Explains and prints.
pub fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    let naming = match &arguments.symbols {
        Some(path) => Naming::new(read_symbols(path)?),
        None => Naming::default(),
    };
    let mut source = Source::open(&arguments.recording)?;
    let options = Options {
        naming: naming.clone(),
        ipis_seen: source.sees_ipis(),
        minimum_wait_ns: u64::try_from(arguments.min_wait.as_nanos()).unwrap_or(u64::MAX),
        waits_max: arguments.waits,
        events_max: EVENTS_MAX,
        keep_slices: arguments.svg.is_some(),
    };
    let wanted: BTreeSet<u32> = arguments
        .vms
        .iter()
        .map(|vm| vm.number_in(&source.facts))
        .collect::<Result<_, _>>()?;
    let mut explanation = explain(&mut source, options);
    if !wanted.is_empty() {
        if let Some(none) = wanted.iter().find(|vm| !explanation.vms.contains_key(vm)) {
            return Err(Failure::Usage(format!(
                "the recording has no events of a VM {none}"
            )));
        }
        explanation.vms.retain(|vm, _| wanted.contains(vm));
    }
    if let Some(path) = &arguments.svg {
        draw(path, arguments, &mut source, &explanation)?;
    }
    let mut document = Document::new("explain", source.machine());
    add(&mut document, &source, &explanation, &naming);
    output::print(&document, arguments.output)?;
    Ok(())
}

/// Draws what happened from `--svg-from` (the middle of the recording when absent) for `--svg-length`.
fn draw(
    path: &Path,
    arguments: &ExplainArguments,
    source: &mut Source,
    explanation: &Explanation,
) -> Result<(), Failure> {
    let picture = Picture::within(explanation, arguments.svg_from, arguments.svg_length)?;
    fs::write(path, picture.draw_source(source, explanation))
        .with_context(|| format!("{}: the picture cannot be written", path.display()))?;
    Ok(())
}

/// Adds the sums, whom they can be blamed on, the spin loops, and the longest waits.
fn add(document: &mut Document, source: &Source, explanation: &Explanation, naming: &Naming) {
    let end_ns = explanation.span_ns.map_or(0, |(_, end_ns)| end_ns);
    for (&vm, of) in &explanation.vms {
        document.note(words::sentence(&source.facts, vm, of, end_ns));
    }
    document.table(Table::of(
        "CPU time in spin loops, and for what",
        rows::vms(source, explanation),
    ));
    document.table(Table::of(
        "For whom, and who ran on the CPU that it had left (shares of 1 % and more)",
        rows::blame(source, explanation),
    ));
    document.table(Table::of(
        "Spin loops of the guests",
        rows::loops(source, explanation, naming),
    ));
    let waits = rows::waits(source, explanation, naming);
    if !waits.is_empty() {
        document.table(Table::of("The longest waits", waits));
    }
    notes(document, source, explanation);
}

fn notes(document: &mut Document, source: &Source, explanation: &Explanation) {
    document.note(
        "\nA wait is seen when a pause-loop window fits into it; shorter ones are not in these figures. `unknown`: the host's \
         events do not say.",
    );
    if let Some(blind) = &source.facts.ipi.blind {
        document.note(format!(
            "Inter-processor interrupts are not seen ({blind}): without symbols, locks and function calls cannot be told apart."
        ));
    }
    if explanation.losses > 0 {
        document.note(format!(
            "Events were lost {} times; spin time just before is unknown.",
            explanation.losses
        ));
    }
    for problem in &source.problems {
        document.note(problem.clone());
    }
}
