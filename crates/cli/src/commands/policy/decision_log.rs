// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of decisions: 8 bytes that name it, 8 with the size of a record, then records of `struct unspin_decision_record`
//! (policy/steering/policies.h) as they lie in memory, little-endian. More policies make longer records.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, anyhow};
use unspin_policy::steering::DecisionRecord;

use crate::terminal::failure::Failure;

/// The contract's version is part of it.
const NAME: [u8; 8] = *b"unspdec0";
const BYTES: usize = size_of::<DecisionRecord>();
const HEADER_BYTES: usize = NAME.len() + size_of::<u64>();

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
        file.write_all(&(BYTES as u64).to_le_bytes())?;
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
    let file = path.display();
    let Some((header, records)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(anyhow!("{file}: no log of decisions").into());
    };
    let (name, size) = header.split_at(NAME.len());
    if name != NAME {
        return Err(anyhow!("{file}: no log of decisions, or of another contract").into());
    }
    if size != (BYTES as u64).to_le_bytes() {
        return Err(anyhow!(
            "{file}: written by another version of unspin: its records have another size than {BYTES} bytes"
        )
        .into());
    }
    if records.len() % BYTES != 0 {
        return Err(anyhow!("{file}: its last decision is cut off").into());
    }
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
        let mut other = whole.clone();
        other[8] += 8;
        for (wrong, says) in [
            (&whole[1..], "or of another contract"),
            (&whole[..whole.len() - 1], "cut off"),
            (&other, "another version"),
            (b"", "no log"),
        ] {
            std::fs::write(&path, wrong).expect("a file");
            let Err(Failure::Failed(error)) = read(&path) else {
                panic!("{says}")
            };
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
