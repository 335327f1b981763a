// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin explain`: who lost CPU time to spinning, for whom, and who ran instead. From a recording alone.

use std::{fs::File, io::BufReader, path::Path};

use anyhow::Context;
use unspin_analysis::{
    explain::attribution::{EVENTS_MAX, Explainer, Explanation, Options},
    waits::spin_locations::Naming,
};
use unspin_events::{Event, facts::Facts, log::EventLog};
use unspin_recording::Recorded;
use unspin_report::Document;

use crate::{
    commands::{
        explain::{args::ExplainArguments, tables as explain_tables, timeline_svg},
        outcomes::run::read_symbols,
        record::open as recordings,
    },
    terminal::{failure::Failure, output},
};

/// Events, and what is known beside them.
pub struct Source {
    /// Who is who.
    pub facts: Facts,
    /// What is missing or damaged.
    pub problems: Vec<String>,
    events: Events,
}

enum Events {
    Recorded(Box<Recorded>),
    Log(EventLog),
}

impl Source {
    /// A recording's folder, or the file of an event log.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(path: &Path) -> Result<Source, Failure> {
        if path.is_file() {
            let file = File::open(path).with_context(|| path.display().to_string())?;
            let read = EventLog::read(&mut BufReader::new(file))
                .with_context(|| path.display().to_string())?;
            let problems = read.truncated.iter().map(ToString::to_string).collect();
            return Ok(Source {
                facts: Facts {
                    commit: read.log.metadata().commit.clone(),
                    machine: read.log.metadata().machine.clone(),
                    ..Facts::default()
                },
                problems,
                events: Events::Log(read.log),
            });
        }
        let recorded = recordings::open(path)?;
        Ok(Source {
            facts: recorded.facts().clone(),
            problems: recorded.problems().to_vec(),
            events: Events::Recorded(Box::new(recorded)),
        })
    }

    /// Gives every event to `take`, in order of time. What turns out to be damaged is added to `problems`.
    pub fn each(&mut self, mut take: impl FnMut(Event)) {
        match &self.events {
            Events::Recorded(recorded) => {
                let mut events = recorded.events();
                events.by_ref().for_each(&mut take);
                self.problems.extend(events.problems());
            }
            Events::Log(log) => log.events().iter().copied().for_each(take),
        }
    }

    /// Whether a missing IPI means that none was sent.
    pub fn sees_ipis(&self) -> bool {
        self.facts.ipi.blind.is_none()
    }
}

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
