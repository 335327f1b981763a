// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flight recorder, as rows.

use std::path::Path;

use unspin_report::row;

use super::{News, Status};

row! {
    "ring", ["record"];
    /// How a flight recorder does: the last lines of `--keep`, and of `--json` one every ten seconds.
    pub struct RingRow {
        /// Its folder.
        pub folder: String = ("folder", Text),
        /// Segments that are there.
        pub segments: usize = ("segments", Count),
        /// Events in them.
        pub events: u64 = ("events", Count),
        /// What they take with all that is beside them, kept spans left out; bytes.
        pub bytes: u64 = ("bytes", Count),
        /// From the first event that is there to the last; ns.
        pub span_ns: u64 = ("holds", Nanoseconds),
        /// Bytes written in all.
        pub bytes_written: u64 = ("bytes written", Count),
        /// Events dropped because they were older than what is kept, or for want of room.
        pub dropped_events: u64 = ("dropped", Count),
        /// Segments dropped because they were older than what is kept.
        pub old_segments: u64,
        /// Segments dropped because all took more than they may.
        pub large_segments: u64,
        /// Segments dropped because the disk was full.
        pub disk_full_segments: u64 = ("dropped, disk full", Count),
        /// Events that could not be written because the disk was full.
        pub unwritten_events: u64 = ("not written", Count),
        /// Spans that are kept.
        pub spans: u64 = ("kept spans", Count),
        /// Triggers while a span was being kept: it went on for longer.
        pub joined_triggers: u64 = ("joined", Count),
        /// Triggers for which nothing was kept: there were as many spans as may be, or the disk was full.
        pub refused_triggers: u64 = ("refused", Count),
        /// CPU time of this process since it recorded; ns.
        pub own_cpu_ns: u64 = ("own CPU time", Nanoseconds),
    }
}

row! {
    "trigger", ["record"];
    /// Something happened for which a span is kept, or would be.
    pub struct TriggerRow {
        /// Why: `spin-share`, `signal` or `soft-lockup`.
        pub reason: String = ("trigger", Text),
        /// Whom it is about, as a VM; empty: nobody alone.
        pub subject: String = ("of", Text),
        /// More of it.
        pub detail: String = ("what", Text),
        /// When; `CLOCK_MONOTONIC`, ns.
        pub at_ns: u64,
        /// When, since 1970; ns.
        pub unix_ns: u64,
        /// What became of it: `kept`, `joined`, `too_many` or `no_room`.
        pub became: &'static str = ("became", Text),
        /// The span's folder; null: none is kept.
        pub folder: Option<String> = ("folder", Text),
    }
}

/// How it does.
pub fn ring(folder: &Path, status: &Status, own_cpu_ns: u64) -> RingRow {
    let (extent, counts) = (&status.extent, &status.counts);
    RingRow {
        folder: folder.display().to_string(),
        segments: extent.segments,
        events: extent.events,
        bytes: extent.bytes,
        span_ns: extent.span_ns,
        bytes_written: counts.bytes_written,
        dropped_events: counts.dropped.events,
        old_segments: counts.dropped.old_segments,
        large_segments: counts.dropped.large_segments,
        disk_full_segments: counts.dropped.disk_full_segments,
        unwritten_events: counts.unwritten_events,
        spans: counts.spans,
        joined_triggers: counts.joined_triggers,
        refused_triggers: counts.refused_triggers,
        own_cpu_ns,
    }
}

/// What became of a trigger; `None`: the news is of something else.
pub fn trigger(news: &News) -> Option<TriggerRow> {
    let (trigger, became, folder) = match news {
        News::Begun(trigger, folder) => (trigger, "kept", Some(folder)),
        News::Joined(trigger, folder) => (trigger, "joined", Some(folder)),
        News::TooMany(trigger) => (trigger, "too_many", None),
        News::NoRoom(trigger) => (trigger, "no_room", None),
        News::Whole(_) | News::DiskFull { .. } => return None,
    };
    Some(TriggerRow {
        reason: trigger.reason.clone(),
        subject: trigger.subject.clone(),
        detail: trigger.detail.clone(),
        at_ns: trigger.at_ns,
        unix_ns: trigger.unix_ns,
        became,
        folder: folder.map(|folder| folder.display().to_string()),
    })
}

/// News in a line, for people.
pub fn words(news: &News) -> String {
    match news {
        News::Begun(trigger, folder) => {
            format!("{}: kept in {}", trigger.words(), folder.display())
        }
        News::Joined(trigger, folder) => format!(
            "{}: the span in {} goes on for longer",
            trigger.words(),
            folder.display()
        ),
        News::Whole(folder) => format!("{} is whole", folder.display()),
        News::TooMany(trigger) => format!(
            "{}: not kept, there are as many spans as --max-kept allows",
            trigger.words()
        ),
        News::NoRoom(trigger) => format!("{}: not kept, the disk is full", trigger.words()),
        News::DiskFull {
            segments,
            unwritten_events,
        } => format!(
            "the disk is full: {segments} segments were dropped before their time, {unwritten_events} events could not be written"
        ),
    }
}
