// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of decisions: 8 bytes that name it, then records of `struct unspin_decision_record` (policy/steering.h) as they
//! lie in memory, little-endian.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, anyhow};
use unspin_steering::DecisionRecord;

use crate::failure::Failure;

/// The contract's version is part of it.
const NAME: [u8; 8] = *b"unspdec0";
const BYTES: usize = size_of::<DecisionRecord>();

/// A log that is being written.
pub struct DecisionFile(BufWriter<File>);

impl DecisionFile {
    /// A new file; one of that name is overwritten.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<DecisionFile, Failure> {
        let file = File::create(path).with_context(|| format!("writing {}", path.display()))?;
        let mut file = BufWriter::new(file);
        file.write_all(&NAME)?;
        Ok(DecisionFile(file))
    }

    /// Adds a decision.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, record: &DecisionRecord) -> std::io::Result<()> {
        self.0.write_all(&record.to_bytes())
    }

    /// All of it is in the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// All decisions of a file.
///
/// # Errors
/// When it cannot be read or is something else.
pub fn read(path: &Path) -> Result<Vec<DecisionRecord>, Failure> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let records = bytes
        .strip_prefix(&NAME)
        .filter(|records| records.len() % BYTES == 0);
    let records = records.ok_or_else(|| {
        anyhow!(
            "{}: no whole log of decisions of this version",
            path.display()
        )
    })?;
    let records = records.chunks_exact(BYTES);
    Ok(records.filter_map(DecisionRecord::from_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut record = DecisionRecord {
            time_ns: 7,
            thread: 42,
            event: 1,
            ..DecisionRecord::default()
        };
        let mut file = DecisionFile::create(&path).expect("it is writable");
        file.add(&record).expect("it is writable");
        record.thread = 43;
        file.add(&record).expect("it is writable");
        file.finish().expect("it is writable");
        let records = read(&path).expect("a log");
        assert_eq!(records.len(), 2);
        assert_eq!((records[0].thread, records[1]), (42, record));
        let whole = std::fs::read(&path).expect("a file");
        for wrong in [&whole[1..], &whole[..whole.len() - 1], b""] {
            std::fs::write(&path, wrong).expect("a file");
            assert!(read(&path).is_err());
        }
    }
}
