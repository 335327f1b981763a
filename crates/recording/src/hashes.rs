// SPDX-License-Identifier: MIT OR Apache-2.0
//! `hashes.jsonl` in a folder of finished files: XXH64 of each, a JSON line a file, so that the files stay what their format
//! says and any changed or missing byte is noticed.
//!
//! A file's line is on the disk before the file has its name: whatever has a name has a line, whenever the writer ends. A
//! line without a file is of one that never got its name, or that was merged since. Parquet's own footer has no checksum, and
//! a changed byte there or in a page could pass for another number.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    hash::Hasher,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::{Error, names};

/// The list's name.
pub const HASHES: &str = "hashes.jsonl";
/// Longest list that is read, bytes: a million files.
const BYTES_MAX: u64 = 128 << 20;
const READ_BYTES: usize = 64 << 10;

/// A file that is hashed while it is written.
pub struct HashedFile {
    file: File,
    hash: XxHash64,
}

impl HashedFile {
    /// Everything that is written to `file` from now on, its beginning.
    pub fn new(file: File) -> HashedFile {
        HashedFile {
            file,
            hash: XxHash64::with_seed(0),
        }
    }

    /// Puts the file onto the disk; its hash.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(self) -> io::Result<u64> {
        self.file.sync_data()?;
        Ok(self.hash.finish())
    }
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The hash of a whole file.
///
/// # Errors
/// When it cannot be read.
pub fn hash_of(file: &mut File) -> io::Result<u64> {
    let mut hash = XxHash64::with_seed(0);
    let mut buffer = vec![0; READ_BYTES];
    file.seek(SeekFrom::Start(0))?;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finish()),
            got => hash.write(&buffer[..got]),
        }
    }
}

/// A line.
#[derive(Serialize, Deserialize)]
struct Line {
    file: String,
    /// 16 digits.
    xxh64: String,
}

impl Line {
    fn text(file: &str, hash: u64) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec(&Line {
            file: file.to_owned(),
            xxh64: digits(hash),
        })?;
        text.push(b'\n');
        Ok(text)
    }
}

fn digits(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The list of a folder.
#[derive(Debug, Default)]
pub struct Hashes {
    path: PathBuf,
    found: BTreeMap<String, u64>,
    unreadable: usize,
    /// Lines of files that are gone, since the list was last written anew.
    stale: usize,
    /// The last line is not whole: what comes next begins a line of its own.
    is_cut: bool,
}

impl Hashes {
    /// The list as it is on the disk; empty where there is none. Of two lines of one file the last counts.
    ///
    /// # Errors
    /// When it cannot be read, or is longer than any that is written.
    pub fn read(folder: &Path) -> Result<Hashes, Error> {
        let path = folder.join(HASHES);
        let mut hashes = Hashes {
            path: path.clone(),
            ..Hashes::default()
        };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(hashes),
            Err(error) => return Err(Error::io(&path, "opening")(error)),
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(Error::io(&path, "reading"))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(Error::broken(&path, "longer than 128 MiB"));
        }
        hashes.is_cut = bytes.last().is_some_and(|last| *last != b'\n');
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let entry = serde_json::from_slice::<Line>(line).ok().and_then(|line| {
                let hash = u64::from_str_radix(&line.xxh64, 16).ok()?;
                // As it is written: another way to write the number is damage.
                (digits(hash) == line.xxh64).then_some((line.file, hash))
            });
            match entry {
                Some((file, hash)) => {
                    hashes.found.insert(file, hash);
                }
                // A kill in the middle of the last one: its file has no name yet.
                None if !line.ends_with(b"\n") => {}
                None => hashes.unreadable += 1,
            }
        }
        Ok(hashes)
    }

    /// That of a file; `None`: nothing is known of it.
    pub fn of(&self, file: &str) -> Option<u64> {
        self.found.get(file).copied()
    }

    /// How many files it names.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether it names none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Lines that say nothing: the list is damaged.
    pub fn unreadable_lines(&self) -> usize {
        self.unreadable
    }

    /// Adds a line; it is on the disk when this returns.
    ///
    /// # Errors
    /// What the system says.
    pub fn add(&mut self, file: &str, hash: u64) -> Result<(), Error> {
        let mut text = Line::text(file, hash).map_err(|error| Error::broken(&self.path, error))?;
        if self.is_cut {
            text.insert(0, b'\n');
        }
        let written = File::options()
            .create(true)
            .append(true)
            .open(&self.path)
            .and_then(|mut list| list.write_all(&text).and_then(|()| list.sync_data()));
        // Until the next line is known to have a beginning of its own.
        self.is_cut = written.is_err();
        written.map_err(Error::io(&self.path, "writing"))?;
        self.found.insert(file.to_owned(), hash);
        Ok(())
    }

    /// Adds many at once: the list is written anew, in one step.
    ///
    /// # Errors
    /// As [`Hashes::keep`].
    pub fn add_all(
        &mut self,
        hashes: impl IntoIterator<Item = (String, u64)>,
    ) -> Result<(), Error> {
        self.found.extend(hashes);
        self.keep(|_| true)
    }

    /// The file is gone. Its line stays on the disk, and is read as one of a file that is not there.
    pub fn forget(&mut self, file: &str) {
        self.stale += usize::from(self.found.remove(file).is_some());
    }

    /// Whether the list on the disk is so long that [`Hashes::keep`] is worth it: then it takes no more than twice what it
    /// says.
    pub fn is_stale(&self) -> bool {
        const FEW: usize = 64;
        self.stale > self.found.len() + FEW
    }

    /// Writes the list anew, in one step, with the lines of those files alone.
    ///
    /// # Errors
    /// What the system says; the list is then as before.
    pub fn keep(&mut self, wanted: impl Fn(&str) -> bool) -> Result<(), Error> {
        let mut text = Vec::new();
        for (file, hash) in self.found.iter().filter(|(file, _)| wanted(file)) {
            text.extend(Line::text(file, *hash).map_err(|error| Error::broken(&self.path, error))?);
        }
        let partial = names::partial(&self.path);
        let written = File::create(&partial)
            .and_then(|mut list| list.write_all(&text).and_then(|()| list.sync_data()))
            .and_then(|()| fs::rename(&partial, &self.path));
        written.map_err(|source| {
            // What stays is the earlier one; a rest that cannot be removed is never read.
            let _ = fs::remove_file(&partial);
            Error::io(&self.path, "writing")(source)
        })?;
        self.found.retain(|file, _| wanted(file));
        self.is_cut = false;
        self.stale = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> (tempfile::TempDir, Hashes) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(HASHES), text).expect("room");
        let hashes = Hashes::read(folder.path()).expect("readable");
        (folder, hashes)
    }

    #[test]
    fn what_is_written_is_what_is_hashed() {
        let mut file = tempfile::tempfile().expect("a file");
        let mut hashed = HashedFile::new(file.try_clone().expect("a descriptor"));
        hashed.write_all(b"some ").expect("written");
        hashed.write_all(b"bytes").expect("written");
        let hash = hashed.finish().expect("on the disk");
        assert_eq!(hash_of(&mut file).expect("readable"), hash);
        assert_eq!(hash, XxHash64::oneshot(0, b"some bytes"));
    }

    #[test]
    fn lines_are_added_read_and_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = || Hashes::read(folder.path()).expect("readable");
        assert_eq!(read().of("a"), None);
        let mut hashes = read();
        hashes.add("a", 7).expect("room");
        hashes.add("b", u64::MAX).expect("room");
        let found = read();
        assert_eq!((found.of("a"), found.of("b")), (Some(7), Some(u64::MAX)));
        hashes.keep(|file| file == "b").expect("room");
        hashes.add("c", 1).expect("room");
        let found = read();
        assert_eq!([found.of("a"), found.of("c")], [None, Some(1)]);
        assert_eq!(found.of("b"), Some(u64::MAX));
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1);
    }

    #[test]
    fn lines_of_files_that_are_gone_are_left_out_when_there_are_many() {
        let folder = tempfile::tempdir().expect("a folder");
        let lines = || {
            let text = fs::read_to_string(folder.path().join(HASHES)).expect("a list");
            text.lines().count()
        };
        let mut hashes = Hashes::read(folder.path()).expect("readable");
        let many = (0..100).map(|number| (number.to_string(), number));
        hashes.add_all(many).expect("room");
        let mut gone = 0;
        while !hashes.is_stale() {
            hashes.forget(&gone.to_string());
            hashes.forget(&gone.to_string()); // counted once
            gone += 1;
        }
        assert_eq!((gone, hashes.len(), lines()), (83, 17, 100));
        hashes.keep(|_| true).expect("room");
        assert_eq!((hashes.is_stale(), lines()), (false, 17));
        let found = Hashes::read(folder.path()).expect("readable");
        assert_eq!((found.of("82"), found.of("83")), (None, Some(83)));
    }

    #[test]
    fn what_a_kill_cut_off_spoils_no_other_line() {
        let whole = "{\"file\":\"a\",\"xxh64\":\"0000000000000007\"}\n{\"file\":\"b\",\"xxh64\":\"0000000000000008\"}\n";
        let second = whole.find("\n{").expect("two lines") + 1;
        for length in second + 1..whole.len() - 1 {
            let (folder, mut hashes) = list(&whole[..length]);
            assert_eq!(
                (hashes.of("a"), hashes.of("b")),
                (Some(7), None),
                "{length}"
            );
            assert_eq!(hashes.unreadable_lines(), 0);
            hashes.add("c", 9).expect("room");
            let found = Hashes::read(folder.path()).expect("readable");
            assert_eq!(
                (found.of("a"), found.of("c")),
                (Some(7), Some(9)),
                "{length}"
            );
        }
    }

    #[test]
    fn what_is_no_line_is_counted() {
        for text in [
            "{}\n",
            "{\"file\":\"a\",\"xxh64\":\"7\"}\n",
            "{\"file\":\"a\",\"xxh64\":\"+000000000000007\"}\n",
            "{\"file\":\"a\",\"xxh64\":\"00000000000000AB\"}\n",
            "\u{fffd}\n",
        ] {
            let (_folder, hashes) = list(text);
            assert_eq!(
                (hashes.of("a"), hashes.unreadable_lines()),
                (None, 1),
                "{text}"
            );
        }
    }
}
