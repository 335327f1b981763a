// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments of a ring, oldest first, and the rule by which the oldest goes.

use std::collections::{BTreeMap, VecDeque};

use unspin_events::{Event, KIND_NAMES, What};

use crate::{names::SegmentName, ring::options::RingOptions};

/// A segment on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub number: u32,
    /// Hash of its file.
    pub hash: u64,
    /// Size of its file.
    pub bytes: u64,
    pub events: u64,
    /// Time of its first event.
    pub first_ns: u64,
    /// Time of its last event.
    pub last_ns: u64,
    /// When it was written, by the ring's clock.
    pub written_ns: u64,
    /// Events that were lost before events of it, by number of kind.
    pub lost: BTreeMap<u32, u64>,
}

impl Segment {
    /// What those events, sorted by time, will be. `None`: there are none.
    pub fn of(number: u32, events: &[Event], now_ns: u64) -> Option<Segment> {
        Some(Segment {
            number,
            hash: 0,
            bytes: 0,
            events: events.len() as u64,
            first_ns: events.first()?.time_ns,
            last_ns: events.last()?.time_ns,
            written_ns: now_ns,
            lost: lost_in(events),
        })
    }

    pub fn file(&self) -> String {
        SegmentName::single(self.number).file()
    }
}

fn lost_in(events: &[Event]) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for event in events {
        if let What::Lost { events, lost_kind } = event.what {
            let sum: &mut u64 = sums.entry(lost_kind).or_default();
            *sum = sum.saturating_add(events);
        }
    }
    sums
}

/// Why the oldest segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was written longer ago than is kept.
    Old,
    /// All together take more than they may.
    Large,
    /// The disk is full.
    DiskFull,
}

/// All of them, with their sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    list: VecDeque<Segment>,
    bytes: u64,
    events: u64,
}

impl Segments {
    pub fn push(&mut self, segment: Segment) {
        self.bytes += segment.bytes;
        self.events += segment.events;
        self.list.push_back(segment);
    }

    pub fn pop_oldest(&mut self) -> Option<Segment> {
        let oldest = self.list.pop_front()?;
        self.bytes -= oldest.bytes;
        self.events -= oldest.events;
        Some(oldest)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.list.iter()
    }

    pub fn oldest(&self) -> Option<&Segment> {
        self.list.front()
    }

    pub fn newest(&self) -> Option<&Segment> {
        self.list.back()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    /// Times of the first and of the last event; segments overlap a little.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        let first = self.list.iter().map(|segment| segment.first_ns).min()?;
        let last = self.list.iter().map(|segment| segment.last_ns).max()?;
        Some((first, last))
    }

    /// What was lost before events that are in them, by the word of its kind.
    pub fn lost(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for (&kind, &events) in self.list.iter().flat_map(|segment| &segment.lost) {
            let word = KIND_NAMES.get(kind as usize).copied().unwrap_or("unknown");
            let sum: &mut u64 = sums.entry(word.to_owned()).or_default();
            *sum = sum.saturating_add(events);
        }
        sums
    }

    /// Why the oldest has to go now; `None`: it may stay, or there is none. `other_bytes`: what else counts.
    pub fn oldest_must_go(
        &self,
        options: &RingOptions,
        other_bytes: u64,
        now_ns: u64,
    ) -> Option<Why> {
        let oldest = self.oldest()?;
        if now_ns.saturating_sub(oldest.written_ns) > options.keep_ns {
            return Some(Why::Old);
        }
        (self.bytes.saturating_add(other_bytes) > options.bytes_max).then_some(Why::Large)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u32, bytes: u64, written_ns: u64) -> Segment {
        Segment {
            number,
            hash: 0,
            bytes,
            events: 10,
            first_ns: written_ns,
            last_ns: written_ns + 5,
            written_ns,
            lost: BTreeMap::from([(number, 2)]),
        }
    }

    fn two() -> Segments {
        let mut segments = Segments::default();
        segments.push(segment(0, 100, 1_000));
        segments.push(segment(1, 50, 2_000));
        segments
    }

    #[test]
    fn whichever_limit_comes_first() {
        let options = RingOptions::new(1_000, 160);
        let why = |other_bytes, now_ns| two().oldest_must_go(&options, other_bytes, now_ns);
        assert_eq!(why(0, 2_000), None);
        assert_eq!(why(10, 2_000), None);
        assert_eq!(why(11, 2_000), Some(Why::Large));
        assert_eq!(why(0, 2_001), Some(Why::Old));
        // A clock that is behind makes nothing older.
        assert_eq!(why(0, 0), None);
        assert_eq!(
            Segments::default().oldest_must_go(&options, 1_000, 9_999),
            None
        );
    }

    #[test]
    fn sums_are_of_what_is_there() {
        let mut segments = two();
        assert_eq!(
            (segments.len(), segments.bytes(), segments.events()),
            (2, 150, 20)
        );
        assert_eq!(segments.span_ns(), Some((1_000, 2_005)));
        assert_eq!(segments.lost().len(), 2);
        assert_eq!(segments.pop_oldest().map(|oldest| oldest.number), Some(0));
        assert_eq!(
            (segments.len(), segments.bytes(), segments.events()),
            (1, 50, 10)
        );
        assert_eq!(
            segments.lost(),
            BTreeMap::from([(KIND_NAMES[1].to_owned(), 2)])
        );
        segments.pop_oldest();
        assert_eq!((segments.span_ns(), segments.bytes()), (None, 0));
        assert_eq!(segments.pop_oldest(), None);
    }
}
