// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a ring does: what is there, what happened to it, what became of a trigger.

use std::path::PathBuf;

use crate::{Summary, cut::Dropped};

/// What happened to a ring so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Bytes of all segments, also of those that are gone.
    pub bytes_written: u64,
    /// Events in segments, also in those that are gone.
    pub events_written: u64,
    /// What is gone.
    pub dropped: Dropped,
    /// Events that came and could not be written, because the disk was full and dropping did not help.
    pub unwritten_events: u64,
    /// Spans that were kept, the one that grows among them.
    pub spans: u64,
    /// Triggers that came while a span grew: it goes on for longer.
    pub joined_triggers: u64,
    /// Triggers for which no span was kept: there were as many as there may be, or the disk was full.
    pub refused_triggers: u64,
    /// The last span that was finished.
    pub last_span: Option<PathBuf>,
}

/// What of a ring is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingExtent {
    /// Segments.
    pub segments: usize,
    /// Events in them.
    pub events: u64,
    /// What the ring takes on the disk, kept spans not counted; bytes.
    pub bytes: u64,
    /// From its first event to its last; ns.
    pub span_ns: u64,
}

/// A ring that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSummary {
    /// Of what is there, as of any recording.
    pub summary: Summary,
    /// What is there.
    pub extent: RingExtent,
    /// What happened to it.
    pub counts: RingCounts,
}

/// What became of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A span grows in that folder.
    Begun(PathBuf),
    /// One grew already, and goes on for longer.
    Joined(PathBuf),
    /// There are as many as there may be.
    TooMany,
    /// The disk is full.
    NoRoom,
}
