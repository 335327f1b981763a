// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a recording.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use unspin_events::{Event, KIND_NAMES, What, facts::Facts};

use crate::{
    Error, Manifest, hashes::Hashes, manifest::Ended, merge, names::SegmentName, pending::Pending,
    schema::SEGMENT_ROWS_MAX, segment_write,
};

/// How often what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A segment is closed when its first event has waited so long: what a kill can cost at most.
    pub segment_ns: u64,
    /// Or when it has so many events, 1 to [`SEGMENT_ROWS_MAX`].
    pub segment_rows: usize,
    /// So many segments are merged into one file; 0 or 1: never.
    pub merge_segments: u32,
}

impl Default for Options {
    /// One second or 131,072 events; 60 segments a file.
    fn default() -> Options {
        Options {
            segment_ns: 1_000_000_000,
            segment_rows: SEGMENT_ROWS_MAX,
            merge_segments: 60,
        }
    }
}

/// A recording that is being written. Memory: the events of one segment (64 bytes each, at most 8 MiB), some 12 MiB while
/// a segment is encoded, and the facts. Dropped unfinished, it leaves what a kill leaves.
#[derive(Debug)]
pub struct Recording {
    folder: PathBuf,
    options: Options,
    manifest: Manifest,
    hashes: Hashes,
    manifest_changed: bool,
    manifest_written: Instant,
    manifest_took: Duration,
    pending: Pending,
    bytes_written: u64,
    next_segment: u32,
    /// First segment that is not merged yet.
    unmerged: u32,
    merge_error: Option<String>,
    failed: bool,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// As it stands in `recording.json`.
    pub manifest: Manifest,
    /// Bytes of all segments, as they were written first.
    pub bytes: u64,
    /// Why segments could not be merged (they stay single ones); `None`: they were.
    pub merge_error: Option<String>,
}

impl Recording {
    /// Whether a recording may begin in `folder`: it is empty, or not there. Changes nothing.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], or what the system says.
    pub fn may_begin(folder: &Path) -> Result<(), Error> {
        let mut entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io(folder, "reading the folder")(error)),
        };
        let Some(entry) = entries.next() else {
            return Ok(());
        };
        let entry = entry.map_err(Error::io(folder, "reading the folder"))?;
        Err(Error::NotEmpty {
            folder: folder.to_owned(),
            found: entry.file_name().to_string_lossy().into_owned(),
        })
    }

    /// Begins a recording in `folder`, which is made when it is not there.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], or what the system says.
    pub fn create(folder: &Path, facts: Facts, options: Options) -> Result<Recording, Error> {
        Recording::may_begin(folder)?;
        fs::create_dir_all(folder).map_err(Error::io(folder, "making the folder"))?;
        let manifest = Manifest::new(facts);
        manifest.write(folder)?;
        Ok(Recording {
            folder: folder.to_owned(),
            pending: Pending::new(options.segment_rows, options.segment_ns),
            options,
            manifest,
            hashes: Hashes::read(folder)?,
            manifest_changed: false,
            manifest_written: Instant::now(),
            manifest_took: Duration::ZERO,
            bytes_written: 0,
            next_segment: 0,
            unmerged: 0,
            merge_error: None,
            failed: false,
        })
    }

    /// Adds events, in any order; [`What::Lost`] are also summed in [`Facts::lost`].
    ///
    /// # Errors
    /// When a segment became full and could not be written. What was written before stays; only [`Recording::finish`] is
    /// left to do.
    pub fn append(&mut self, events: &[Event]) -> Result<(), Error> {
        self.manifest.unwritten_events += events.len() as u64;
        for event in events {
            if let What::Lost { events, lost_kind } = event.what {
                self.count_lost(events, lost_kind);
            }
        }
        self.may_go_on()?;
        let mut rest = events;
        while !rest.is_empty() {
            rest = self.pending.take(rest);
            if self.pending.is_full() {
                self.write_segment()?;
            }
        }
        Ok(())
    }

    /// To be called some ten times a second with the time of any one clock: closes the segment when it is old enough,
    /// merges, and writes `recording.json` when it has changed.
    ///
    /// # Errors
    /// As for [`Recording::append`].
    pub fn tick(&mut self, now_ns: u64) -> Result<(), Error> {
        self.may_go_on()?;
        if self.pending.is_due(now_ns) {
            self.write_segment()?;
        } else if !self.pending.is_empty() {
            return Ok(());
        }
        self.write_manifest_if_changed()
    }

    /// The facts so far.
    pub fn facts(&self) -> &Facts {
        &self.manifest.facts
    }

    /// The facts, to be completed; they are on the disk with the next segment.
    pub fn facts_mut(&mut self) -> &mut Facts {
        self.manifest_changed = true;
        &mut self.manifest.facts
    }

    /// Events that are in segments.
    pub fn events_written(&self) -> u64 {
        self.manifest.events
    }

    /// Bytes of all segments, as they were written first.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Where it is written.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes what is left, and how it ended. After an error of [`Recording::append`] or [`Recording::tick`], `because`
    /// says which, and no event is written any more.
    ///
    /// # Errors
    /// When the last segment or `recording.json` cannot be written; then `recording.json` says how far the recording
    /// goes whenever there is room for that.
    pub fn finish(mut self, ended: Ended, because: Option<String>) -> Result<Summary, Error> {
        self.manifest.ended = ended;
        self.manifest.ended_because = because;
        let last = match self.failed || self.pending.is_empty() {
            true => Ok(()),
            false => self.write_segment(),
        };
        if let Err(error) = &last {
            self.manifest.ended = match error.is_disk_full() {
                true => Ended::DiskFull,
                false => Ended::Failed,
            };
            self.manifest.ended_because = Some(error.to_string());
        }
        let manifest = self.manifest.write(&self.folder);
        last.and(manifest)?;
        Ok(Summary {
            manifest: self.manifest,
            bytes: self.bytes_written,
            merge_error: self.merge_error,
        })
    }

    fn may_go_on(&self) -> Result<(), Error> {
        match self.failed {
            true => Err(Error::AfterError {
                folder: self.folder.clone(),
            }),
            false => Ok(()),
        }
    }

    fn write_segment(&mut self) -> Result<(), Error> {
        let name = SegmentName::single(self.next_segment);
        let path = self.folder.join(name.file());
        let written = segment_write::write(&path, &mut self.hashes, self.pending.sorted());
        self.failed = written.is_err();
        written?;
        self.bytes_written += fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let events = self.pending.len() as u64;
        self.manifest.events += events;
        self.manifest.unwritten_events -= events;
        self.pending.clear();
        self.next_segment += 1;
        self.manifest_changed = true;
        self.merge_if_due();
        self.write_manifest_if_changed().inspect_err(|_| {
            self.failed = true;
        })
    }

    /// A merge that fails costs nothing but small files; it is not tried again.
    fn merge_if_due(&mut self) {
        let wanted = self.options.merge_segments;
        if wanted < 2 || self.merge_error.is_some() || self.next_segment - self.unmerged < wanted {
            return;
        }
        let range = SegmentName {
            first: self.unmerged,
            last: self.next_segment - 1,
        };
        match merge::merge(&self.folder, &mut self.hashes, range) {
            Ok(()) => self.unmerged = self.next_segment,
            Err(error) => self.merge_error = Some(error.to_string()),
        }
    }

    /// A description of 65,000 tasks takes longer: it is then written less often, so that it never takes more than a
    /// twentieth of the time.
    fn write_manifest_if_changed(&mut self) -> Result<(), Error> {
        let soon = self.manifest_written.elapsed() < 20 * self.manifest_took;
        if self.manifest_changed && !soon {
            let begin = Instant::now();
            self.manifest.write(&self.folder)?;
            self.manifest_changed = false;
            self.manifest_took = begin.elapsed();
            self.manifest_written = Instant::now();
        }
        Ok(())
    }

    fn count_lost(&mut self, events: u64, kind: u32) {
        let word = KIND_NAMES.get(kind as usize).copied().unwrap_or("unknown");
        let sum = self.manifest.facts.lost.entry(word.to_owned()).or_default();
        *sum = sum.saturating_add(events);
        self.manifest_changed = true;
    }
}
