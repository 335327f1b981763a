// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin explain`: who lost CPU time to spinning, for whom, and who ran instead. From a recording alone.

use unspin_analysis::{
    explain::attribution::{EVENTS_MAX, Explainer, Explanation, Options},
    waits::spin_locations::Naming,
};
use unspin_report::Document;

use crate::{
    commands::{
        explain::{Source, args::ExplainArguments, tables as explain_tables, timeline_svg},
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
        timeline_svg::write(path, arguments, &mut source, &explanation)?;
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

/// Explains all of it.
pub fn explain(source: &mut Source, options: Options) -> Explanation {
    let mut explainer = Explainer::new(options);
    source.each(|event| explainer.push(event));
    explainer.finish()
}
