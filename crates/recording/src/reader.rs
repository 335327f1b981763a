// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens a recording: what is in it, what is missing, and its events in order.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use unspin_events::facts::Facts;

use crate::{
    Error, Manifest,
    hashes::{HASHES, Hashes},
    manifest::Ended,
    names::{self, Listing, SegmentName},
    segment_read::{self, Chunk},
};

/// A recording on disk.
#[derive(Debug)]
pub struct Recorded {
    folder: PathBuf,
    manifest: Manifest,
    problems: Vec<String>,
    /// So many of them are damage or losses; the others say which part of a longer recording this is.
    damages: usize,
    pub(crate) chunks: Vec<Chunk>,
    /// Times from which on events are missing before the next ones, sorted.
    pub(crate) holes: Vec<u64>,
}

impl Recorded {
    /// As [`Recorded::open`], for who draws conclusions from events.
    ///
    /// # Errors
    /// Also when damage leaves no event of it: empty tables would look like an answer. A recording that is whole and holds no
    /// event is none of that.
    pub fn open_readable(folder: &Path) -> Result<Recorded, Error> {
        let recorded = Recorded::open(folder)?;
        if recorded.rows() == 0 && recorded.damages > 0 {
            return Err(Error::Unreadable {
                folder: folder.to_owned(),
                problems: recorded.problems,
            });
        }
        Ok(recorded)
    }

    /// Opens the recording in `folder` and checks every file once. What is damaged or cut off is left out and told by
    /// [`Recorded::problems`]; everything else can be read.
    ///
    /// # Errors
    /// When there is no recording, or one of another version.
    pub fn open(folder: &Path) -> Result<Recorded, Error> {
        if !fs::metadata(folder)
            .map_err(Error::io(folder, "opening the recording"))?
            .is_dir()
        {
            let source = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(Error::io(folder, "opening the recording")(source));
        }
        let listing = names::list(folder)?;
        let mut problems = Vec::new();
        let manifest = match Manifest::read(folder) {
            Ok(manifest) => manifest,
            Err(error @ Error::Version { .. }) => return Err(error),
            Err(error) => {
                problems.push(error.to_string());
                None
            }
        };
        if manifest.is_none() && listing.segments.is_empty() {
            return Err(Error::NotARecording {
                folder: folder.to_owned(),
            });
        }
        if manifest.is_none() {
            problems.push(format!(
                "{}: without recording.json nothing is known of the machine, the VMs and the losses",
                folder.display()
            ));
        }
        let mut recorded = Recorded {
            folder: folder.to_owned(),
            manifest: manifest.unwrap_or_default(),
            problems,
            damages: 0,
            chunks: Vec::new(),
            holes: Vec::new(),
        };
        let hashes = recorded.read_hashes();
        recorded.take_segments(&listing, &hashes)?;
        recorded.say_what_is_missing(&listing);
        recorded.damages = recorded.problems.len();
        recorded.say_which_part_it_is();
        Ok(recorded)
    }

    /// What is said beside the events. Empty where `recording.json` is missing or damaged.
    pub fn facts(&self) -> &Facts {
        &self.manifest.facts
    }

    /// All of `recording.json`.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is missing or damaged, and where a flight recorder has cut it, one line each; nothing: it is whole. To be shown wherever its numbers are.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// How many events [`Recorded::events`] yields, but for the damage that only reading shows and the
    /// [`unspin_events::What::Lost`] put in for holes.
    pub fn rows(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.rows).sum()
    }

    /// Times of the first and the last event.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        let first = self.chunks.iter().map(|chunk| chunk.first_ns).min()?;
        let last = self.chunks.iter().map(|chunk| chunk.last_ns).max()?;
        Some((first, last))
    }

    /// The list of hashes; what is wrong with it is said.
    fn read_hashes(&mut self) -> Hashes {
        let hashes = Hashes::read(&self.folder).unwrap_or_else(|error| {
            self.problems.push(error.to_string());
            Hashes::default()
        });
        match hashes.unreadable_lines() {
            0 => {}
            lines => {
                let said = format!("{HASHES}: damaged: {lines} lines of it say nothing");
                self.problems.push(said);
            }
        }
        hashes
    }

    /// Chooses files so that every number is read once: the widest that is whole.
    fn take_segments(&mut self, listing: &Listing, hashes: &Hashes) -> Result<(), Error> {
        // What a flight recorder has dropped is not missing.
        let first = listing.segments.first().map_or(0, |name| name.first);
        let is_ring = self.manifest.ring.is_some();
        let mut next = if is_ring { first } else { 0 };
        let mut hole = false;
        let mut rest = listing.segments.as_slice();
        while let Some((&name, others)) = rest.split_first() {
            rest = others;
            if name.first < next {
                continue; // a part of what was taken, or of a merged file that was not
            }
            if name.first > next {
                self.problems.push(missing(next, name.first - 1));
                hole = true;
            }
            let (file, hash) = (name.file(), hashes.of(&name.file()));
            match segment_read::inspect(&self.folder.join(&file), hash) {
                Ok(chunks) => {
                    if hash.is_none() {
                        self.problems
                            .push(format!("{file}: read unchecked: {HASHES} does not name it"));
                    }
                    self.take(chunks, &mut hole);
                    next = name.last.saturating_add(1);
                }
                Err(error @ Error::Version { .. }) => return Err(error),
                // The oldest one, and the recorder goes on.
                Err(error) if is_ring && self.chunks.is_empty() && error.is_not_there() => {
                    next = name.last.saturating_add(1);
                }
                Err(error) => {
                    let parts = rest.iter().any(|other| name.covers(*other));
                    let instead = if parts { "; its parts are used" } else { "" };
                    self.problems.push(format!("left out: {error}{instead}"));
                    next = if parts {
                        name.first
                    } else {
                        hole = true;
                        name.last.saturating_add(1)
                    };
                }
            }
        }
        self.chunks
            .sort_by_key(|chunk| (chunk.first_ns, chunk.last_ns));
        self.holes.sort_unstable();
        Ok(())
    }

    fn take(&mut self, chunks: Vec<Chunk>, hole: &mut bool) {
        if let (true, Some(first)) = (*hole, chunks.first()) {
            self.holes.push(first.first_ns);
            *hole = false;
        }
        self.chunks.extend(chunks);
    }

    fn say_what_is_missing(&mut self, listing: &Listing) {
        let manifest = &self.manifest;
        for name in &listing.partial {
            self.problems.push(format!(
                "{name} was never finished and is left out: up to a second at that place is missing"
            ));
        }
        if manifest.schema_version == 0 {
            return; // there is none
        }
        if manifest.ended == Ended::Running {
            self.problems.push(
                "it goes on, or was ended without being asked: up to its last second may be missing"
                    .to_owned(),
            );
        }
        if let Some(because) = &manifest.ended_because {
            self.problems
                .push(format!("it ended because of an error: {because}"));
        }
        if manifest.unwritten_events > 0 && manifest.ended != Ended::Running {
            self.problems.push(format!(
                "{} events at the end could not be written",
                manifest.unwritten_events
            ));
        }
        self.problems.extend(losses(&manifest.facts));
        // A segment may be there before recording.json counts it, never the other way round.
        // What a flight recorder dropped since is known to nobody but for the first number that is still there.
        let rows = self.rows();
        let first = listing.segments.first().map(|name| name.first);
        let as_counted = manifest
            .ring
            .as_ref()
            .is_none_or(|ring| first == Some(ring.first_segment));
        if as_counted && rows < manifest.events {
            self.problems.push(format!(
                "{rows} of {} recorded events are there",
                manifest.events
            ));
        }
    }
}

impl Recorded {
    /// Of a flight recorder, or of what it kept.
    fn say_which_part_it_is(&mut self) {
        match (&self.manifest.kept, &self.manifest.ring) {
            (Some(kept), _) => self.problems.extend(kept.words()),
            (None, Some(ring)) => self.problems.extend(ring.words()),
            (None, None) => {}
        }
    }
}

/// What was lost while recording.
fn losses(facts: &Facts) -> Vec<String> {
    let mut said = Vec::new();
    if !facts.lost.is_empty() {
        let kinds: Vec<String> = facts
            .lost
            .iter()
            .map(|(kind, events)| format!("{} {events}", kind.replace(char::is_control, "?")))
            .collect();
        said.push(format!(
            "events were lost while recording: {}",
            kinds.join(", ")
        ));
    }
    let count = |number: Option<u64>| number.filter(|&number| number > 0);
    if let Some(runs) = count(facts.missed_runs) {
        said.push(format!(
            "{runs} runs of the observing programs did not take place"
        ));
    }
    if let Some(exits) = count(facts.unobserved_exits) {
        said.push(format!(
            "{exits} exits were of vCPU threads beyond those that could be observed"
        ));
    }
    said
}

fn missing(first: u32, last: u32) -> String {
    let range = SegmentName { first, last };
    format!("{} is missing", range.file())
}
