// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ring: the last minutes of a recording that never ends, in a folder that is a recording at every moment.
//!
//! Segments appear as those of a [`crate::Recording`] do; the oldest go when they are too old, when all take too much, or when
//! the disk is full. Parts of it are kept when something happened ([`Ring::keep`]), as recordings of their own in its folder
//! `kept`. Whoever reads a ring finds its beginning cut, and is told.

mod options;
mod segments;
mod span;
mod start;
mod status;

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use unspin_events::{
    Event, What,
    facts::{Facts, TaskFacts, VmFacts},
};

use crate::{
    Error, Manifest, Summary,
    hashes::{HASHES, Hashes},
    manifest::Ended,
    names,
    pending::Pending,
    segment_write,
};

pub use crate::cut::{Dropped, KeptFacts, RingFacts, Trigger};
pub use options::RingOptions;
use segments::{Segment, Segments, Why};
use span::Span;
pub use status::{Kept, RingCounts, RingExtent, RingSummary};

/// What has changed of names and losses is on the disk so soon; ns.
const MANIFEST_SOON_NS: u64 = 1_000_000_000;
/// And what only counts; ns.
const MANIFEST_LATE_NS: u64 = 10_000_000_000;

/// A ring that is being written. Memory: as for a [`crate::Recording`], and 200 bytes a segment.
#[derive(Debug)]
pub struct Ring {
    folder: PathBuf,
    _lock: File,
    options: RingOptions,
    manifest: Manifest,
    manifest_written_ns: u64,
    names_changed: bool,
    hashes: Hashes,
    pending: Pending,
    segments: Segments,
    next_segment: u32,
    /// The latest that [`Ring::tick`] was told: a clock that goes back makes nothing younger.
    now_ns: u64,
    /// Of `recording.json` and the list of hashes.
    other_bytes: u64,
    span: Option<Span>,
    counts: RingCounts,
}

impl Ring {
    /// Begins a ring in `folder`, which is empty, not there, or has an earlier ring. Of an earlier one kept spans stay, and it
    /// becomes one itself while there is room for that among them; otherwise it is removed. `at`: the moment, for its name.
    ///
    /// # Errors
    /// [`Error::NotEmpty`] for a folder with anything else in it, [`Error::Busy`] while another writes to it, or what the system says.
    pub fn begin(
        folder: &Path,
        facts: Facts,
        options: RingOptions,
        at: Trigger,
    ) -> Result<Ring, Error> {
        fs::create_dir_all(folder).map_err(Error::io(folder, "making the folder"))?;
        let now_ns = at.at_ns;
        let lock = start::lock(folder)?;
        let refused = start::put_away(folder, &options, at)?;
        let mut manifest = Manifest::new(facts);
        manifest.ring = Some(RingFacts {
            keep_ns: options.keep_ns,
            bytes_max: options.bytes_max,
            ..RingFacts::default()
        });
        let mut ring = Ring {
            folder: folder.to_owned(),
            _lock: lock,
            manifest,
            manifest_written_ns: now_ns,
            names_changed: false,
            hashes: Hashes::read(folder)?,
            pending: Pending::new(options.segment_rows, options.segment_ns),
            segments: Segments::default(),
            next_segment: 0,
            now_ns,
            other_bytes: 0,
            span: None,
            counts: RingCounts {
                spans: span::count(folder)? as u64,
                refused_triggers: refused.into(),
                ..RingCounts::default()
            },
            options,
        };
        ring.write_manifest()?;
        Ok(ring)
    }

    /// Whether a ring may begin in `folder`: as [`Ring::begin`] says. Changes nothing.
    ///
    /// # Errors
    /// As [`Ring::begin`].
    pub fn may_begin(folder: &Path) -> Result<(), Error> {
        start::may_begin(folder).map(|_| ())
    }

    /// Adds events, in any order. Those for which there is no room on the disk are counted, and what is missing is said in their
    /// place.
    ///
    /// # Errors
    /// When a segment became full and could not be written for another reason than a full disk.
    pub fn append(&mut self, events: &[Event]) -> Result<(), Error> {
        let mut rest = events;
        while !rest.is_empty() {
            rest = self.pending.take(rest);
            if self.pending.is_full() {
                self.write_segment()?;
            }
        }
        Ok(())
    }

    /// To be called some ten times a second with the time of the clock of triggers: closes the segment when it is old enough,
    /// drops what is too old, ends the span that grows.
    ///
    /// # Errors
    /// As for [`Ring::append`].
    pub fn tick(&mut self, now_ns: u64) -> Result<(), Error> {
        self.now_ns = self.now_ns.max(now_ns);
        let is_over = |span: &Span| span.is_over(self.now_ns);
        let span_is_over = self.span.as_ref().is_some_and(is_over);
        if self.pending.is_due(self.now_ns) || (span_is_over && !self.pending.is_empty()) {
            self.write_segment()?;
        }
        if self
            .span
            .as_ref()
            .is_some_and(|span| span.is_over(self.now_ns))
        {
            self.end_span(None)?;
        }
        self.drop_what_must_go()?;
        let wait_ns = match self.names_changed {
            true => MANIFEST_SOON_NS,
            false => MANIFEST_LATE_NS,
        };
        if self.now_ns.saturating_sub(self.manifest_written_ns) >= wait_ns {
            self.write_manifest()?;
            // It may have become longer, and counts.
            self.drop_what_must_go()?;
        }
        Ok(())
    }

    /// Keeps what was before this moment and what comes after it, as the options say.
    ///
    /// # Errors
    /// What the system says, but for a full disk.
    pub fn keep(&mut self, trigger: Trigger) -> Result<Kept, Error> {
        if let Some(span) = &mut self.span {
            let end_max_ns = span.began_ns().saturating_add(self.options.keep_ns);
            span.join(trigger, end_max_ns);
            self.counts.joined_triggers += 1;
            return Ok(Kept::Joined(span.folder().to_owned()));
        }
        if span::count(&self.folder)? >= self.options.spans_max {
            self.counts.refused_triggers += 1;
            return Ok(Kept::TooMany);
        }
        let around_ns = (self.options.before_ns, self.options.after_ns);
        let begun = self.with_room(|ring| {
            Span::begin(&ring.folder, trigger.clone(), &ring.manifest, around_ns)
        });
        match begun {
            Ok(span) => self.span = Some(span),
            Err(error) if error.is_disk_full() => {
                self.counts.refused_triggers += 1;
                return Ok(Kept::NoRoom);
            }
            Err(error) => return Err(error),
        }
        self.counts.spans += 1;
        let folder = self.span.as_ref().map(|span| span.folder().to_owned());
        self.link()?;
        self.write_span_manifest(None)?;
        Ok(Kept::Begun(folder.unwrap_or_default()))
    }

    /// Who the VMs are, with the times of their vCPUs: to be told every second.
    pub fn set_vms(&mut self, vms: &[VmFacts]) {
        self.manifest.facts.vms = vms.to_vec();
    }

    /// Who the tasks are, after somebody has come or has a name now, VMs included: that is on the disk soon.
    pub fn set_tasks(&mut self, tasks: &[TaskFacts], left_out: u64) {
        let facts = &mut self.manifest.facts;
        facts.tasks = tasks.to_vec();
        facts.left_out = left_out;
        self.names_changed = true;
    }

    /// The facts, to be completed at the end.
    pub fn facts_mut(&mut self) -> &mut Facts {
        &mut self.manifest.facts
    }

    /// The time of the first event that is there; `None`: there is none.
    pub fn first_ns(&self) -> Option<u64> {
        self.segments.span_ns().map(|(first_ns, _)| first_ns)
    }

    /// What happened to it.
    pub fn counts(&self) -> &RingCounts {
        &self.counts
    }

    /// What is there.
    pub fn extent(&self) -> RingExtent {
        RingExtent {
            segments: self.segments.len(),
            events: self.segments.events(),
            bytes: self.bytes(),
            span_ns: self
                .segments
                .span_ns()
                .map_or(0, |(first_ns, last_ns)| last_ns - first_ns),
        }
    }

    /// Whether a span grows.
    pub fn is_keeping(&self) -> bool {
        self.span.is_some()
    }

    /// Writes what is left, and how it ended; also into the span that grows. `because`: the error of [`Ring::append`] or
    /// [`Ring::tick`] that ended it; then no event is written any more.
    ///
    /// # Errors
    /// When the last segment or `recording.json` cannot be written.
    pub fn finish(mut self, ended: Ended, because: Option<String>) -> Result<RingSummary, Error> {
        let failed = because.is_some();
        self.manifest.ended = ended;
        self.manifest.ended_because = because;
        let last = match failed || self.pending.is_empty() {
            true => Ok(()),
            false => self.write_segment(),
        };
        if failed {
            self.manifest.unwritten_events += self.pending.len() as u64;
        }
        let dropped = last.and_then(|()| self.drop_what_must_go());
        let span = self.end_span(Some(ended));
        let manifest = self.write_manifest_now();
        dropped.and(span).and(manifest)?;
        Ok(RingSummary {
            extent: self.extent(),
            counts: self.counts,
            summary: Summary {
                bytes: self.segments.bytes(),
                manifest: self.manifest,
                merge_error: None,
            },
        })
    }

    fn bytes(&self) -> u64 {
        self.segments.bytes() + self.other_bytes
    }

    fn write_segment(&mut self) -> Result<(), Error> {
        let events = self.pending.sorted();
        let Some(mut segment) = Segment::of(self.next_segment, events, self.now_ns) else {
            return Ok(());
        };
        let path = self.folder.join(segment.file());
        let written = self
            .with_room(|ring| segment_write::write(&path, &mut ring.hashes, ring.pending.sorted()));
        match written {
            Ok(()) => {}
            Err(error) if error.is_disk_full() => {
                self.lose_pending(&segment);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        segment.hash = self.hashes.of(&segment.file()).unwrap_or_default();
        segment.bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        self.pending.clear();
        self.next_segment += 1;
        self.counts.events_written += segment.events;
        self.counts.bytes_written += segment.bytes;
        let has_losses = !segment.lost.is_empty();
        self.segments.push(segment);
        self.names_changed |= has_losses;
        self.measure_other_bytes();
        self.link()?;
        self.drop_what_must_go()
    }

    /// The disk is full and nothing that the ring may drop helps: these events are gone, and that is said before the next ones,
    /// with what they would have said was lost.
    fn lose_pending(&mut self, segment: &Segment) {
        let mut lost = segment.lost.clone();
        let is_event = |event: &&Event| !matches!(event.what, What::Lost { .. });
        let events = self.pending.sorted().iter().filter(is_event).count() as u64;
        *lost.entry(0).or_default() += events;
        self.counts.unwritten_events += events;
        self.manifest.unwritten_events += events;
        self.names_changed = true;
        self.pending.clear();
        for (kind, events) in lost {
            self.pending
                .take(&[Event::lost(segment.last_ns, events, kind)]);
        }
    }

    /// Adds what belongs to the span that grows, if one does. A span that cannot grow is cut short.
    fn link(&mut self) -> Result<(), Error> {
        let Some(mut span) = self.span.take() else {
            return Ok(());
        };
        let is_new = |segment: &&Segment| span.lacks(segment);
        let wanted: Vec<Segment> = self.segments.iter().filter(is_new).cloned().collect();
        let older = self.segments.iter().take_while(|segment| !is_new(segment));
        let older_events: u64 = older.map(|segment| segment.events).sum();
        let events_before = self.counts.dropped.events + older_events;
        let linked = self.with_room(|ring| span.link(&ring.folder, &wanted, events_before));
        let full = matches!(&linked, Err(error) if error.is_disk_full());
        if full || span.bytes() >= self.options.bytes_max {
            span.cut_short();
        }
        self.span = Some(span);
        match full {
            true => Ok(()),
            false => linked,
        }
    }

    fn end_span(&mut self, ended: Option<Ended>) -> Result<(), Error> {
        let Some(span) = &self.span else {
            return Ok(());
        };
        self.counts.last_span = Some(span.folder().to_owned());
        self.write_span_manifest(Some(ended.unwrap_or(Ended::Finished)))?;
        self.span = None;
        Ok(())
    }

    fn write_span_manifest(&mut self, ended: Option<Ended>) -> Result<(), Error> {
        let Some(span) = self.span.take() else {
            return Ok(());
        };
        self.update_manifest();
        let written = self.with_room(|ring| span.write_manifest(&ring.manifest, ended));
        self.span = Some(span);
        match written {
            // It can be read as it is: its names are those of before.
            Err(error) if error.is_disk_full() => Ok(()),
            other => other,
        }
    }

    fn drop_what_must_go(&mut self) -> Result<(), Error> {
        while let Some(why) = {
            let other_bytes = self.other_bytes;
            self.segments
                .oldest_must_go(&self.options, other_bytes, self.now_ns)
        } {
            self.drop_oldest(why)?;
        }
        if self.hashes.is_stale() {
            let rewritten = self.with_room(|ring| ring.hashes.keep(|_| true));
            if !matches!(&rewritten, Err(error) if error.is_disk_full()) {
                rewritten?;
            }
            self.measure_other_bytes();
        }
        Ok(())
    }

    fn drop_oldest(&mut self, why: Why) -> Result<(), Error> {
        let Some(oldest) = self.segments.pop_oldest() else {
            return Ok(());
        };
        let path = self.folder.join(oldest.file());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(&path, "removing the oldest segment")(error));
            }
            _ => {}
        }
        self.hashes.forget(&oldest.file());
        let dropped = &mut self.counts.dropped;
        dropped.events += oldest.events;
        match why {
            Why::Old => dropped.old_segments += 1,
            Why::Large => dropped.large_segments += 1,
            Why::DiskFull => dropped.disk_full_segments += 1,
        }
        Ok(())
    }

    /// Does it, and again with the oldest segments gone while the disk is full and that may help.
    fn with_room<T>(
        &mut self,
        mut act: impl FnMut(&mut Ring) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            match act(self) {
                Err(error) if error.is_for_want_of_room() && self.would_free() => {
                    self.free_some()?;
                }
                done => return done,
            }
        }
    }

    /// Whether dropping frees anything: a segment that is in a kept span, too, keeps its room.
    fn would_free(&self) -> bool {
        let is_alone = |segment: &Segment| {
            let metadata = fs::metadata(self.folder.join(segment.file()));
            metadata.is_ok_and(|metadata| metadata.nlink() == 1)
        };
        self.segments.iter().any(is_alone)
    }

    /// Room for about one more segment, the newest one's size with a quarter on top.
    fn free_some(&mut self) -> Result<(), Error> {
        let wanted = self.segments.newest().map_or(0, |newest| newest.bytes);
        let (wanted, mut freed) = (wanted + wanted / 4, 0);
        while let Some(oldest) = self.segments.oldest() {
            freed += oldest.bytes;
            self.drop_oldest(Why::DiskFull)?;
            if freed >= wanted {
                break;
            }
        }
        Ok(())
    }

    fn update_manifest(&mut self) {
        self.manifest.events = self.segments.events();
        self.manifest.facts.lost = self.segments.lost();
        if let Some(ring) = &mut self.manifest.ring {
            let oldest = self.segments.oldest().map(|segment| segment.number);
            ring.first_segment = oldest.unwrap_or(self.next_segment);
            ring.dropped = self.counts.dropped;
        }
    }

    /// A full disk costs the description nothing but that it is an older one.
    fn write_manifest(&mut self) -> Result<(), Error> {
        match self.write_manifest_now() {
            Err(error) if error.is_disk_full() => Ok(()),
            other => other,
        }
    }

    fn write_manifest_now(&mut self) -> Result<(), Error> {
        self.manifest_written_ns = self.now_ns;
        let written = self.with_room(|ring| {
            ring.update_manifest();
            ring.manifest.write(&ring.folder)
        });
        self.names_changed &= written.is_err();
        self.measure_other_bytes();
        written
    }

    fn measure_other_bytes(&mut self) {
        let size = |name: &str| fs::metadata(self.folder.join(name)).map_or(0, |file| file.len());
        self.other_bytes = size(names::MANIFEST) + size(HASHES);
    }
}
