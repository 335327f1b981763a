// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part of a ring that is kept: a recording of its own, whose segments are the ring's, linked.
//!
//! What was before the trigger is linked at once and every later segment when it is written, so that a kill costs no more of
//! a kept span than of the ring. A link takes no room but keeps the segment's when the ring drops it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use unspin_events::facts::Facts;

use crate::{
    Error, Manifest,
    cut::{self, KeptFacts, RingFacts, Trigger},
    hashes::Hashes,
    manifest::Ended,
    ring::segments::{Segment, Segments},
};

/// Where kept spans are, in the ring's folder.
pub(crate) const KEPT: &str = "kept";
/// Longest part of a name that tells the trigger.
const NAME_LENGTH_MAX: usize = 40;

/// A span that grows until its end.
#[derive(Debug)]
pub(crate) struct Span {
    folder: PathBuf,
    hashes: Hashes,
    segments: Segments,
    kept: KeptFacts,
    /// What was over before that is no part of it. By the ring's clock.
    from_ns: u64,
    /// By the ring's clock.
    end_ns: u64,
}

impl Span {
    /// Makes the folder for a trigger and its description. Nothing is linked yet.
    ///
    /// # Errors
    /// What the system says; then no folder is left, unless the system refuses that too.
    pub fn begin(
        ring: &Path,
        trigger: Trigger,
        manifest: &Manifest,
        (before_ns, after_ns): (u64, u64),
    ) -> Result<Span, Error> {
        let folder = new_folder(ring, &trigger)?;
        let span = Span {
            from_ns: trigger.at_ns.saturating_sub(before_ns),
            end_ns: trigger.at_ns.saturating_add(after_ns),
            kept: KeptFacts {
                triggers: vec![trigger],
                before_ns,
                after_ns,
                events_before: 0,
                cut_short: false,
            },
            hashes: Hashes::read(&folder)?,
            segments: Segments::default(),
            folder,
        };
        let begun = span.write_manifest(manifest, None);
        if begun.is_err() {
            // It is told why; a folder that cannot be removed either holds nothing that misleads.
            let _ = fs::remove_dir_all(&span.folder);
        }
        begun.map(|()| span)
    }

    /// Whether the segment belongs to it and is not in it. A writer may be behind: what it writes after the trigger may have been
    /// over long before it.
    pub fn lacks(&self, segment: &Segment) -> bool {
        let newest = self.segments.newest().map(|segment| segment.number);
        segment.last_ns >= self.from_ns && newest.is_none_or(|newest| segment.number > newest)
    }

    /// Adds segments of the ring that it lacks, in their order. After an error it is called again with those that it lacks then.
    /// `events_before`: how many events were recorded before them.
    ///
    /// # Errors
    /// What the system says; those before are in it.
    pub fn link(
        &mut self,
        ring: &Path,
        segments: &[Segment],
        events_before: u64,
    ) -> Result<(), Error> {
        let new: Vec<&Segment> = segments
            .iter()
            .filter(|segment| self.lacks(segment))
            .collect();
        let lines = new.iter().map(|segment| (segment.file(), segment.hash));
        match new.as_slice() {
            [] => return Ok(()),
            [one] => self.hashes.add(&one.file(), one.hash)?,
            _ => self.hashes.add_all(lines)?,
        }
        if self.segments.oldest().is_none() {
            self.kept.events_before = events_before;
        }
        for segment in new {
            let (from, to) = (ring.join(segment.file()), self.folder.join(segment.file()));
            link_or_copy(&from, &to)?;
            self.segments.push(segment.clone());
        }
        Ok(())
    }

    /// Another trigger before the end: the span goes on for as long after it, until `end_max_ns`.
    pub fn join(&mut self, trigger: Trigger, end_max_ns: u64) {
        let end_ns = trigger.at_ns.saturating_add(self.kept.after_ns);
        self.end_ns = self.end_ns.max(end_ns.min(end_max_ns));
        self.kept.triggers.push(trigger);
    }

    /// It ends now, although its time is not over.
    pub fn cut_short(&mut self) {
        self.kept.cut_short = true;
        self.end_ns = 0;
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns
    }

    pub fn bytes(&self) -> u64 {
        self.segments.bytes()
    }

    /// When its first trigger was, by the ring's clock.
    pub fn began_ns(&self) -> u64 {
        self.kept.triggers.first().map_or(0, |first| first.at_ns)
    }

    /// Writes what it is. `ring`: the ring's own description; `ended`: how it ended, if it has.
    ///
    /// # Errors
    /// What the system says; the description is then as before.
    pub fn write_manifest(&self, ring: &Manifest, ended: Option<Ended>) -> Result<(), Error> {
        self.manifest(ring, ended).write(&self.folder)
    }

    fn manifest(&self, ring: &Manifest, ended: Option<Ended>) -> Manifest {
        let ring_facts = ring.ring.clone().unwrap_or_default();
        let first = self.segments.oldest().map(|segment| segment.number);
        Manifest {
            ended: ended.unwrap_or_default(),
            events: self.segments.events(),
            unwritten_events: 0,
            ring: Some(RingFacts {
                first_segment: first.unwrap_or_default(),
                ..ring_facts
            }),
            kept: Some(self.kept.clone()),
            facts: self.facts(&ring.facts, ended),
            ..ring.clone()
        }
    }

    fn facts(&self, ring: &Facts, ended: Option<Ended>) -> Facts {
        let (first_ns, last_ns) = self.segments.span_ns().unwrap_or_default();
        let mut facts = cut::within(ring, first_ns, last_ns);
        facts.lost = self.segments.lost();
        facts.end_monotonic_ns = ended.map(|_| last_ns);
        if let Some(trigger) = self.kept.triggers.first() {
            // The wall clock may have been set since the recorder began.
            facts.begin.monotonic_ns = trigger.at_ns;
            facts.begin.unix_ns = trigger.unix_ns;
        }
        facts
    }
}

/// A link, or on file systems without links a copy.
fn link_or_copy(from: &Path, to: &Path) -> Result<(), Error> {
    let linked = fs::hard_link(from, to).or_else(|error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EOPNOTSUPP | libc::EMLINK) => fs::copy(from, to).map(|_| ()),
        _ => Err(error),
    });
    linked.map_err(Error::io(to, "keeping a segment"))
}

/// A folder that was not there, named by time and trigger.
fn new_folder(ring: &Path, trigger: &Trigger) -> Result<PathBuf, Error> {
    let kept = ring.join(KEPT);
    fs::create_dir_all(&kept).map_err(Error::io(&kept, "making the folder"))?;
    let name = name_of(trigger);
    let mut folder = kept.join(&name);
    let mut number = 1;
    loop {
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number += 1;
                folder = kept.join(format!("{name}-{number}"));
            }
            Err(error) => return Err(Error::io(&folder, "making the folder")(error)),
        }
    }
}

/// `2026-11-26T21-40-03Z-spin-share-web-3`: sorts by time, and is a plain name whatever the VM is called.
fn name_of(trigger: &Trigger) -> String {
    let words = format!("{}-{}", trigger.reason, trigger.subject);
    let plain = words.chars().map(|character| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' => character,
        _ => '-',
    });
    let plain: String = plain.take(NAME_LENGTH_MAX).collect();
    format!("{}-{}", utc(trigger.unix_ns), plain.trim_end_matches('-'))
}

/// As in 2026-11-26T21-40-03Z.
fn utc(unix_ns: u64) -> String {
    let seconds = (unix_ns / 1_000_000_000) as libc::time_t;
    let mut parts = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live values of this function; all of `tm` is zero, which is a valid one.
    let parts = unsafe {
        libc::gmtime_r(&seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}-{:02}-{:02}Z",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    )
}

/// How many spans are there.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn count(ring: &Path) -> Result<usize, Error> {
    let kept = ring.join(KEPT);
    match fs::read_dir(&kept) {
        Ok(entries) => Ok(entries.count()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(Error::io(&kept, "reading the folder")(error)),
    }
}

/// A new folder for the files of an earlier ring.
///
/// # Errors
/// What the system says.
pub(crate) fn folder_for(ring: &Path, trigger: &Trigger) -> Result<PathBuf, Error> {
    new_folder(ring, trigger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_says_when_and_why_and_never_leaves_its_place() {
        let trigger = |reason: &str, subject: &str, unix_ns| Trigger {
            reason: reason.into(),
            subject: subject.into(),
            unix_ns,
            ..Trigger::default()
        };
        let second = 1_000_000_000;
        for (trigger, name) in [
            (trigger("signal", "", 0), "1970-01-01T00-00-00Z-signal"),
            (
                trigger("spin-share", "web-3", 1_709_251_199 * second),
                "2024-02-29T23-59-59Z-spin-share-web-3",
            ),
            (
                trigger("spin-share", "../../etc/\u{1b}x", 951_782_400 * second),
                "2000-02-29T00-00-00Z-spin-share-..-..-etc--x",
            ),
        ] {
            assert_eq!(name_of(&trigger), name);
        }
        let long = name_of(&trigger("spin-share", &"v".repeat(500), 0));
        assert!(long.len() < 80, "{long}");
    }

    #[test]
    fn two_of_one_second_have_folders_of_their_own() {
        let ring = tempfile::tempdir().expect("a folder");
        let trigger = Trigger {
            reason: "signal".into(),
            ..Trigger::default()
        };
        assert_eq!(count(ring.path()).expect("readable"), 0);
        let first = new_folder(ring.path(), &trigger).expect("room");
        let second = new_folder(ring.path(), &trigger).expect("room");
        assert!(second.ends_with("kept/1970-01-01T00-00-00Z-signal-2"));
        assert!(first.is_dir() && second.is_dir());
        assert_eq!(count(ring.path()).expect("readable"), 2);
    }
}
