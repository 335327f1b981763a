// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where events come from: a recording or an event log, with what is known beside them, and a guest's symbols.

use std::{
    error::Error,
    fs::{self, File},
    io::BufReader,
    path::{Path, PathBuf},
};

use unspin_events::{
    Event,
    facts::Facts,
    guest_log::GuestLog,
    log::{EventLog, ReadLog},
};
use unspin_recording::Recorded;

use crate::Symbols;

/// Why there are no events, or not what belongs to them.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A recording.
    #[error(transparent)]
    Recording(#[from] unspin_recording::Error),
    /// Another file.
    #[error("{}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why it cannot be read.
        source: Box<dyn Error + Send + Sync>,
    },
    /// What is asked for is not in what there is.
    #[error("{0}")]
    Usage(String),
    /// What there is does not suffice.
    #[error("{0}")]
    NotEnough(String),
}

impl SourceError {
    pub(crate) fn file<E: Into<Box<dyn Error + Send + Sync>>>(
        path: &Path,
    ) -> impl Fn(E) -> SourceError {
        move |source| SourceError::File {
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// Events, and what is known beside them.
pub struct Source {
    /// Who is who.
    pub facts: Facts,
    /// What is missing or damaged, in words.
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
    pub fn open(path: &Path) -> Result<Source, SourceError> {
        if path.is_file() {
            let read = read_log(path)?;
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

    /// The machine that was recorded, which need not be this one, in one line.
    pub fn machine(&self) -> String {
        if self.facts.machine.is_empty() {
            "a machine that the recording does not name".to_owned()
        } else {
            self.facts.machine.clone()
        }
    }
}

pub(crate) fn read_log(path: &Path) -> Result<ReadLog, SourceError> {
    let file = File::open(path).map_err(SourceError::file(path))?;
    EventLog::read(&mut BufReader::new(file)).map_err(SourceError::file(path))
}

/// What the guests of a run logged themselves.
///
/// # Errors
/// When there is no such file, or it is none of that.
pub fn read_guest_log(path: &Path) -> Result<GuestLog, SourceError> {
    let file = File::open(path).map_err(SourceError::file(path))?;
    GuestLog::read(&mut BufReader::new(file)).map_err(SourceError::file(path))
}

/// A guest's symbols, as System.map and /proc/kallsyms have them.
///
/// # Errors
/// When there is no such file, or it is none of that.
pub fn read_symbols(path: &Path) -> Result<Symbols, SourceError> {
    let text = fs::read_to_string(path).map_err(SourceError::file(path))?;
    Symbols::parse(&text).map_err(SourceError::file(path))
}
