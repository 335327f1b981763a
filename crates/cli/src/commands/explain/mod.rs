// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin explain`: who lost CPU time to spinning, and for whom.

pub(crate) mod args;
pub(crate) mod run;
pub(crate) mod tables;

use std::{fs::File, io::BufReader, path::Path};

use anyhow::Context;
use unspin_events::{Event, facts::Facts, log::EventLog};
use unspin_recording::Recorded;

use crate::terminal::failure::Failure;

pub use run::run;

/// Events, and what is known beside them.
pub struct Source {
    /// Who is who.
    pub facts: Facts,
    /// What is missing or damaged.
    pub problems: Vec<String>,
    events: Events,
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
        let recorded = Recorded::open_readable(path)?;
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

enum Events {
    Recorded(Box<Recorded>),
    Log(EventLog),
}
