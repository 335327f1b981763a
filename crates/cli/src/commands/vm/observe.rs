// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching a run of this command: events are kept in memory or go into a recording.

use std::path::Path;

use unspin_agent::record::{Stream, Wanted};
use unspin_experiment::watch::{self, EVENTS_MAX, Events, Observe, Seen, every_event};
use unspin_recording::{Ended, facts::ScenarioFacts};

use crate::{commands::record, terminal::failure::Failure};

/// Programs that are attached, and where their events go.
pub enum Watch {
    /// Into memory.
    Kept(watch::Watch),
    /// Into a recording.
    Recorded(Box<Stream>),
}

impl Watch {
    /// Attaches as `observe` says; as [`watch::Watch::start`].
    ///
    /// # Errors
    /// When this host does not allow what must be.
    pub fn start(observe: Observe, events: Events) -> Result<Option<Watch>, Failure> {
        Ok(watch::Watch::start(observe, events)?.map(Watch::Kept))
    }

    /// Attaches, and records into `folder`; with `keep` the events are kept in memory as well.
    ///
    /// # Errors
    /// When this host cannot be observed, or the folder is not empty or cannot be written.
    pub fn record(folder: &Path, scenario: ScenarioFacts, keep: bool) -> Result<Watch, Failure> {
        let wanted = Wanted {
            keep_events_max: if keep { EVENTS_MAX } else { 0 },
            forget_ended: false,
        };
        let stream = record::start(folder, every_event(), Some(scenario), wanted)?;
        Ok(Watch::Recorded(Box::new(stream)))
    }

    /// Detaches, and brings back what was seen. `ended` says how the run did.
    ///
    /// # Errors
    /// When the kernel does not tell, or the recording could not be written.
    pub fn finish(self, ended: Ended) -> Result<Seen, Failure> {
        match self {
            Watch::Kept(watch) => Ok(watch.finish()?),
            Watch::Recorded(stream) => {
                let streamed = stream.finish(ended);
                if let Some(error) = streamed.error {
                    return Err(Failure::Failed(
                        anyhow::Error::from(error).context("the run was not recorded"),
                    ));
                }
                streamed.summary.map_err(anyhow::Error::from)?;
                Ok(Seen::of(
                    &streamed.observer,
                    streamed.kept,
                    streamed.not_kept,
                )?)
            }
        }
    }
}
