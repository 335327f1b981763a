// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin explain`: who lost CPU time to spinning, for whom, and who ran instead. From a recording alone.

use std::{fs, path::Path};

use anyhow::Context;
use unspin_analysis::{
    explain::{
        attribution::{EVENTS_MAX, Explainer, Explanation, Options},
        timeline_svg::Picture,
    },
    waits::spin_locations::Naming,
};
use unspin_events::Event;
use unspin_report::Document;

use crate::{
    commands::{
        explain::{Source, args::ExplainArguments, tables as explain_tables},
        outcomes::run::read_symbols,
    },
    terminal::{failure::Failure, output},
};

/// Explains and prints.
pub fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    let naming = match &arguments.symbols {
        Some(path) => Naming::new(read_symbols(path)?),
        None => Naming::default(),
    };
    let mut source = Source::open(&arguments.recording)?;
    let ipis_seen = source.sees_ipis();
    let explanation = explain(
        &mut source,
        Options {
            naming: naming.clone(),
            ipis_seen,
            minimum_wait_ns: u64::try_from(arguments.min_wait.as_nanos()).unwrap_or(u64::MAX),
            waits_max: arguments.waits,
            events_max: EVENTS_MAX,
            keep_slices: arguments.svg.is_some(),
        },
    );
    if let Some(path) = &arguments.svg {
        draw(path, arguments, &mut source, &explanation)?;
    }
    let mut document = Document::new("explain", machine(&source));
    explain_tables::add(&mut document, &source, &explanation, &naming);
    output::print(&document, arguments.output)?;
    Ok(())
}

/// The machine that was recorded, which need not be this one.
pub fn machine(source: &Source) -> String {
    if source.facts.machine.is_empty() {
        "a machine that the recording does not name".to_owned()
    } else {
        source.facts.machine.clone()
    }
}

/// Draws what happened from `--svg-from` (the middle of the recording when absent) for `--svg-length`.
///
/// # Errors
/// When the file cannot be written, or nothing happened then.
fn draw(
    path: &Path,
    arguments: &ExplainArguments,
    source: &mut Source,
    explanation: &Explanation,
) -> Result<(), Failure> {
    let Some((first_ns, last_ns)) = explanation.span_ns else {
        return Err(Failure::Usage("there are no events to draw".into()));
    };
    let nanoseconds =
        |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let middle_ns = first_ns + (last_ns - first_ns) / 2;
    let from_ns = arguments
        .svg_from
        .map_or(middle_ns, |from| first_ns.saturating_add(nanoseconds(from)));
    if from_ns >= last_ns {
        let length_ms = (last_ns - first_ns) / 1_000_000;
        let message = format!("the recording is only {length_ms} ms long");
        return Err(Failure::Usage(message));
    }
    let to_ns = from_ns.saturating_add(nanoseconds(arguments.svg_length));
    let picture = Picture {
        from_ns,
        to_ns,
        first_ns,
    };
    let mut events: Vec<Event> = Vec::new();
    source.each(|event| {
        if picture.needs(&event) {
            events.push(event);
        }
    });
    let picture = Picture {
        to_ns: to_ns.min(last_ns),
        ..picture
    };
    fs::write(path, picture.draw(&source.facts, explanation, &events))
        .with_context(|| format!("{}: the picture cannot be written", path.display()))?;
    Ok(())
}

/// Explains all of it.
pub fn explain(source: &mut Source, options: Options) -> Explanation {
    let mut explainer = Explainer::new(options);
    source.each(|event| explainer.push(event));
    explainer.finish()
}
