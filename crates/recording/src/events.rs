// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of a recording in order of time, with bounded memory.
//!
//! Segments overlap a little, because CPUs hand over their events almost, but not quite, in order. Each states its first
//! and last time, so it is opened when the merge reaches its first and dropped after its last.

use std::{cmp::Reverse, collections::BinaryHeap, vec};

use unspin_events::Event;

use crate::{
    reader::Recorded,
    segment_read::{self, ChunkEvents},
};

/// Segments open at a time. Ours overlap two at a time; each takes at most 8 MiB.
const OPEN_MAX: usize = 16;

/// Iterator over a recording's events. Memory: the events of the segments that overlap at one moment, 8 MiB each and 16
/// at most, and one segment that is being decoded.
pub struct Events<'recorded> {
    recorded: &'recorded Recorded,
    next_chunk: usize,
    next_hole: usize,
    /// By time of the next event, then in the order of segments: equal times keep it. Last, the place in `opened`.
    open: BinaryHeap<Reverse<(u64, usize, usize)>>,
    opened: Vec<Option<(Event, vec::IntoIter<Event>)>>,
    problems: Vec<String>,
    undecodable: u64,
}

impl Recorded {
    /// All events, sorted by time. Where a segment is missing a [`unspin_events::What::Lost`] of kind 0 with `u64::MAX`
    /// events (not known how many) stands before the next event. Memory: see [`Events`].
    pub fn events(&self) -> Events<'_> {
        Events::new(self)
    }
}

impl<'recorded> Events<'recorded> {
    fn new(recorded: &'recorded Recorded) -> Events<'recorded> {
        Events {
            recorded,
            next_chunk: 0,
            next_hole: 0,
            open: BinaryHeap::new(),
            opened: Vec::new(),
            problems: Vec::new(),
            undecodable: 0,
        }
    }

    /// Damage that showed itself while reading, beside [`Recorded::problems`]. Whole only after the last event.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.problems.clone();
        if self.undecodable > 0 {
            problems.push(format!(
                "{} events are of a kind or have values that this version does not know: left out",
                self.undecodable
            ));
        }
        problems
    }

    /// Opens what begins no later than the earliest event at hand.
    fn open_chunks(&mut self) {
        while let Some(chunk) = self.recorded.chunks.get(self.next_chunk) {
            let reached = self
                .open
                .peek()
                .is_none_or(|Reverse((time_ns, ..))| chunk.first_ns <= *time_ns);
            if !reached {
                return;
            }
            self.next_chunk += 1;
            if self.open.len() >= OPEN_MAX {
                self.problems.push(format!(
                    "{}: left out: it overlaps {OPEN_MAX} others in time",
                    chunk.path.display()
                ));
                continue;
            }
            match segment_read::read(chunk) {
                Ok(found) => self.open(found),
                Err(error) => {
                    self.problems.push(format!("left out: {error}"));
                    self.open(ChunkEvents {
                        events: vec![hole(chunk.first_ns)],
                        undecodable: 0,
                    });
                }
            }
        }
    }

    fn open(&mut self, found: ChunkEvents) {
        self.undecodable += found.undecodable;
        let mut events = found.events.into_iter();
        if let Some(first) = events.next() {
            let free = self.opened.iter().position(Option::is_none);
            let slot = free.unwrap_or_else(|| {
                self.opened.push(None);
                self.opened.len() - 1
            });
            self.open
                .push(Reverse((first.time_ns, self.next_chunk, slot)));
            self.opened[slot] = Some((first, events));
        }
    }

    fn hole_before(&mut self, time_ns: u64) -> Option<Event> {
        let hole_ns = *self.recorded.holes.get(self.next_hole)?;
        if hole_ns > time_ns {
            return None;
        }
        self.next_hole += 1;
        Some(hole(hole_ns))
    }
}

/// Nobody knows how many events of which kinds are missing before this.
fn hole(time_ns: u64) -> Event {
    Event::lost(time_ns, u64::MAX, 0)
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        self.open_chunks();
        let &Reverse((time_ns, chunk, slot)) = self.open.peek()?;
        if let Some(hole) = self.hole_before(time_ns) {
            return Some(hole);
        }
        self.open.pop();
        let (event, mut events) = self.opened[slot].take()?;
        if let Some(next) = events.next() {
            self.open.push(Reverse((next.time_ns, chunk, slot)));
            self.opened[slot] = Some((next, events));
        }
        Some(event)
    }
}
