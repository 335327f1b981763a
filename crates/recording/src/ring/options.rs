// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of a recording is kept.

use crate::schema::SEGMENT_ROWS_MAX;

/// Longest time that events wait in memory: with draining (20 ms), a look at the clock (100 ms) and encoding, a kill costs a
/// second at most.
const SEGMENT_NS_MAX: u64 = 800_000_000;
/// A ring has so many segments at least, so that what it drops at a time is a small part of it.
const SEGMENTS_MIN: u64 = 8;
/// More than an encoded event ever takes: its columns as they are, and what describes the file; bytes.
const ROW_BYTES_MAX: u64 = 128;

/// What of a recording is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Segments that were written longer ago are dropped; ns.
    pub keep_ns: u64,
    /// The oldest segment is dropped while all of them, `recording.json` and the list of hashes take more; bytes. One
    /// segment that is being written comes on top.
    pub bytes_max: u64,
    /// A segment is closed when its first event has waited so long; ns.
    pub segment_ns: u64,
    /// Or when it has so many events.
    pub segment_rows: usize,
    /// Of what happened before a trigger, so much is kept; ns.
    pub before_ns: u64,
    /// Of what happens after it, so much; ns.
    pub after_ns: u64,
    /// So many spans are kept at most; further ones are refused and counted.
    pub spans_max: usize,
}

impl RingOptions {
    /// Segments of 0.8 s, shorter and smaller where the limits are small; a minute before a trigger and ten seconds after it
    /// are kept, of ten triggers.
    pub fn new(keep_ns: u64, bytes_max: u64) -> RingOptions {
        let rows = bytes_max / SEGMENTS_MIN / ROW_BYTES_MAX;
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        RingOptions {
            keep_ns,
            bytes_max,
            segment_ns: (keep_ns / SEGMENTS_MIN).min(SEGMENT_NS_MAX),
            segment_rows: rows.clamp(1, SEGMENT_ROWS_MAX),
            before_ns: 60_000_000_000,
            after_ns: 10_000_000_000,
            spans_max: 10,
        }
    }
}
