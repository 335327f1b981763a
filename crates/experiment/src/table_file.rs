// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a list of comparisons has been measured so far: a file of one JSON line for each finished cell. A line is written at
//! once and whole lines alone count, so that a run that was killed at any moment goes on without a loss or a double.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use unspin_report::COMMIT;

use crate::{Error, cells::Finished};

/// Its name in the folder.
const NAME: &str = "rows.jsonl";

/// A line: what came of a cell, and by which binary.
#[derive(Debug, Deserialize, Serialize)]
struct Line {
    binary: String,
    commit: String,
    #[serde(flatten)]
    finished: Finished,
}

/// The file, while no other process has it.
pub struct TableFile {
    path: PathBuf,
    file: File,
    binary: String,
    finished: BTreeMap<String, Finished>,
    others: usize,
}

impl TableFile {
    /// Opens or makes it in `folder`, and takes off what a killed run had not finished writing.
    ///
    /// # Errors
    /// When another process has it open, a line cannot be read, or (unless `keep`) another binary has written lines.
    pub fn open(folder: &Path, keep: bool) -> Result<TableFile, Error> {
        TableFile::open_as(
            folder,
            keep,
            binary().context("reading this program's own file")?,
        )
    }

    fn open_as(folder: &Path, keep: bool, binary: String) -> Result<TableFile, Error> {
        let path = folder.join(NAME);
        let shown = || path.display().to_string();
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let mut file = opened.with_context(shown)?;
        if !locks(&file) {
            return Err(anyhow!("{}: another unspin is writing it", path.display()).into());
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(shown)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |end| end + 1);
        file.set_len(whole as u64).with_context(shown)?;
        file.seek(SeekFrom::End(0)).with_context(shown)?;
        let mut rows = TableFile {
            path,
            file,
            binary,
            finished: BTreeMap::new(),
            others: 0,
        };
        rows.read(&bytes[..whole])?;
        if rows.others > 0 && !keep {
            return Err(Error::Usage(format!(
                "{}: another binary of unspin has measured {} of the cells there: --keep leaves them as they are and \
                 measures the rest, another --out begins anew",
                rows.path.display(),
                rows.others
            )));
        }
        Ok(rows)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let line: Line = serde_json::from_slice(line).with_context(|| {
                format!(
                    "{}, line {}: not what was written",
                    self.path.display(),
                    number + 1
                )
            })?;
            self.others += usize::from(line.binary != self.binary);
            // The first counts: what is there is never measured again, so a second can only be a copy.
            self.finished
                .entry(line.finished.cell.clone())
                .or_insert(line.finished);
        }
        Ok(())
    }

    /// Cells that were measured by another binary.
    pub fn others(&self) -> usize {
        self.others
    }

    /// What came of a cell, if it is there.
    pub fn finished(&self, cell: &str) -> Option<&Finished> {
        self.finished.get(cell)
    }

    /// Adds a cell; it is on the disk when this returns. One that is there already stays as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, finished: Finished) -> Result<(), Error> {
        if self.finished.contains_key(&finished.cell) {
            return Ok(());
        }
        let line = Line {
            binary: self.binary.clone(),
            commit: COMMIT.to_owned(),
            finished,
        };
        let mut bytes = serde_json::to_vec(&line).context("writing a row as JSON")?;
        bytes.push(b'\n');
        let written = self
            .file
            .write_all(&bytes)
            .and_then(|()| self.file.sync_data());
        written.with_context(|| self.path.display().to_string())?;
        let finished = line.finished;
        self.finished.insert(finished.cell.clone(), finished);
        Ok(())
    }
}

/// SHA-256 of this program's file: the same source built twice may be two binaries, and a figure belongs to one.
fn binary() -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open("/proc/self/exe")?, &mut hash)?;
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Whether it is ours alone now. A program that was started just now shares an earlier lock of this process until it is
/// executed, so this is asked for a moment.
fn locks(file: &File) -> bool {
    let lock = || {
        // SAFETY: an open descriptor and a constant; the lock goes with the descriptor.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
    };
    (0..20).any(|_| {
        let locked = lock();
        if !locked {
            std::thread::sleep(Duration::from_millis(10));
        }
        locked
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(cell: &str) -> Finished {
        Finished {
            cell: cell.into(),
            machine: format!("a machine with \"quotes\" and a line\nend for {cell}"),
            rows: Vec::new(),
            vms: Vec::new(),
            samples: Vec::new(),
            windows: Vec::new(),
        }
    }

    fn open(folder: &Path) -> TableFile {
        TableFile::open_as(folder, false, "this".into())
            .map_err(message)
            .expect("it opens")
    }

    fn message(failure: Error) -> String {
        match failure {
            Error::Usage(text) => text,
            Error::Failed(error) => format!("{error:#}"),
            other => other.to_string(),
        }
    }

    /// Killed after any byte: what was whole stays, what was not is measured again, nothing is there twice.
    #[test]
    fn a_run_that_was_killed_at_any_byte_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(NAME);
        let cells = ["first", "second", "third"];
        let mut rows = open(folder.path());
        let mut ends = Vec::new();
        for cell in cells {
            rows.add(finished(cell)).map_err(message).expect("written");
            ends.push(fs::metadata(&path).expect("a file").len() as usize);
        }
        drop(rows);
        let bytes = fs::read(&path).expect("lines");
        for killed_at in 0..=bytes.len() {
            fs::write(&path, &bytes[..killed_at]).expect("cut");
            let whole = ends.iter().filter(|end| **end <= killed_at).count();
            let mut rows = open(folder.path());
            for (at, cell) in cells.into_iter().enumerate() {
                assert_eq!(
                    rows.finished(cell).is_some(),
                    at < whole,
                    "{killed_at} {cell}"
                );
                rows.add(finished(cell)).map_err(message).expect("written");
            }
            drop(rows);
            assert_eq!(
                fs::read(&path).expect("lines"),
                bytes,
                "killed at {killed_at}"
            );
        }
    }

    #[test]
    fn another_binarys_rows_are_not_mixed_in_silence() {
        let folder = tempfile::tempdir().expect("a folder");
        open(folder.path())
            .add(finished("cell"))
            .map_err(message)
            .expect("written");
        let other = |keep| TableFile::open_as(folder.path(), keep, "other".into());
        let refused = other(false).err().map(message).expect("refused");
        assert!(
            refused.contains("another binary") && refused.contains("--keep"),
            "{refused}"
        );
        let kept = other(true).map_err(message).expect("kept");
        assert_eq!((kept.others(), kept.finished("cell").is_some()), (1, true));
    }

    #[test]
    fn what_is_damaged_is_told_and_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(NAME);
        fs::write(&path, "{\"cell\":\n").expect("written");
        let opened = TableFile::open_as(folder.path(), true, "this".into());
        let told = opened.err().map(message).expect("refused");
        assert!(told.contains("line 1"), "{told}");
        assert_eq!(fs::read(&path).expect("still there"), b"{\"cell\":\n");
    }

    #[test]
    fn two_at_once_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = open(folder.path());
        let second = TableFile::open_as(folder.path(), false, "this".into());
        assert!(
            second
                .err()
                .map(message)
                .expect("refused")
                .contains("another unspin")
        );
        drop(first);
        open(folder.path());
    }
}
