// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that wait to become a segment.

use unspin_events::Event;

use crate::schema::SEGMENT_ROWS_MAX;

/// At most one segment of events.
#[derive(Debug)]
pub(crate) struct Pending {
    events: Vec<Event>,
    /// When the first of them was seen to wait.
    since_ns: Option<u64>,
    rows_max: usize,
    wait_ns: u64,
}

impl Pending {
    /// None yet. A segment has at most so many events (1 to [`SEGMENT_ROWS_MAX`]), and none waits for longer than that.
    pub fn new(rows_max: usize, wait_ns: u64) -> Pending {
        Pending {
            events: Vec::new(),
            since_ns: None,
            rows_max: rows_max.clamp(1, SEGMENT_ROWS_MAX),
            wait_ns,
        }
    }

    /// Takes as many as there is room for, and gives back the others.
    pub fn take<'events>(&mut self, events: &'events [Event]) -> &'events [Event] {
        let room = self.rows_max - self.events.len();
        let (now, later) = events.split_at(room.min(events.len()));
        self.events.extend_from_slice(now);
        later
    }

    pub fn is_full(&self) -> bool {
        self.events.len() == self.rows_max
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether they have waited long enough at that time of any one clock. It begins with the first call that finds them.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        if self.events.is_empty() {
            self.since_ns = None;
            return false;
        }
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(since_ns) >= self.wait_ns
    }

    /// All of them, by time. Stable: events of one thread at one moment keep the order in which they happened.
    pub fn sorted(&mut self) -> &[Event] {
        self.events
            .sort_by_key(|event| (event.time_ns, event.thread));
        &self.events
    }

    pub fn clear(&mut self) {
        self.events.clear();
        self.since_ns = None;
    }
}
