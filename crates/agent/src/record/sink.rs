// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the writer of a stream puts events: a recording, or the ring of a flight recorder.

use unspin_events::{Event, facts::Facts};
use unspin_recording::{Ended, Error, Recording, Summary};

use crate::Names;

/// What takes events and names.
pub(crate) trait Sink: Send {
    /// Adds events, in any order.
    fn append(&mut self, events: &[Event]) -> Result<(), Error>;
    /// Does what goes by time; `CLOCK_MONOTONIC`, ns.
    fn tick(&mut self, now_ns: u64) -> Result<(), Error>;
    /// Takes over who is who; called once a second and before the end.
    fn put_names(&mut self, names: &mut Names, now_ns: u64);
    /// The facts, to be completed at the end.
    fn facts_mut(&mut self) -> &mut Facts;
    /// Bytes written so far.
    fn bytes_written(&self) -> u64;
    /// Writes what is left, and how it ended.
    fn finish(self: Box<Self>, ended: Ended, because: Option<String>) -> Result<Summary, Error>;
}

impl Sink for Recording {
    fn append(&mut self, events: &[Event]) -> Result<(), Error> {
        Recording::append(self, events)
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), Error> {
        Recording::tick(self, now_ns)
    }

    fn put_names(&mut self, names: &mut Names, _now_ns: u64) {
        let facts = Recording::facts_mut(self);
        facts.vms = names.vms().to_vec();
        facts
            .tasks
            .extend_from_slice(&names.tasks()[facts.tasks.len()..]);
        facts.left_out = names.left_out();
    }

    fn facts_mut(&mut self) -> &mut Facts {
        Recording::facts_mut(self)
    }

    fn bytes_written(&self) -> u64 {
        Recording::bytes_written(self)
    }

    fn finish(self: Box<Self>, ended: Ended, because: Option<String>) -> Result<Summary, Error> {
        Recording::finish(*self, ended, because)
    }
}
