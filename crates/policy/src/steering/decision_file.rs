// SPDX-License-Identifier: MIT OR Apache-2.0
//! A decision log: 8 bytes of magic, 8 bytes with the size of a record, then records of `struct unspin_decision_record`
//! (policy/steering/policies.h) as in memory, little-endian. More policies make longer records.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use super::DecisionRecord;

/// The magic; it contains the contract's version.
const NAME: [u8; 8] = *b"unspdec0";
const BYTES: usize = size_of::<DecisionRecord>();
const HEADER_BYTES: usize = NAME.len() + size_of::<u64>();

/// Why a log of decisions cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum DecisionFileError {
    /// The file cannot be read or written.
    #[error("{doing} {file}: {source}")]
    File {
        /// `reading` or `writing`.
        doing: &'static str,
        /// The file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no decision log.
    #[error("{file}: {why}")]
    Content {
        /// The file.
        file: String,
        /// What it contains instead.
        why: String,
    },
}

impl DecisionFileError {
    fn file(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> DecisionFileError {
        let file = path.display().to_string();
        move |source| DecisionFileError::File {
            doing,
            file: file.clone(),
            source,
        }
    }
}

/// A decision log that is being written.
pub struct DecisionFile(BufWriter<File>);

impl DecisionFile {
    /// Creates the file, or truncates it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<DecisionFile, DecisionFileError> {
        let refused = DecisionFileError::file("writing", path);
        let mut file = BufWriter::new(File::create(path).map_err(&refused)?);
        file.write_all(&NAME).map_err(&refused)?;
        file.write_all(&(BYTES as u64).to_le_bytes())
            .map_err(&refused)?;
        Ok(DecisionFile(file))
    }

    /// Adds a decision.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, record: &DecisionRecord) -> io::Result<()> {
        self.0.write_all(&record.to_bytes())
    }

    /// Writes all buffered decisions to the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Reads all decisions of a file.
///
/// # Errors
/// When it cannot be read or is no decision log.
pub fn read_decisions(path: &Path) -> Result<Vec<DecisionRecord>, DecisionFileError> {
    let bytes = std::fs::read(path).map_err(DecisionFileError::file("reading", path))?;
    let wrong = |why: String| DecisionFileError::Content {
        file: path.display().to_string(),
        why,
    };
    let Some((header, records)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(wrong("no log of decisions".into()));
    };
    let (name, size) = header.split_at(NAME.len());
    if name != NAME {
        return Err(wrong("no log of decisions, or of another contract".into()));
    }
    if size != (BYTES as u64).to_le_bytes() {
        return Err(wrong(format!(
            "written by another version of unspin: its records have another size than {BYTES} bytes"
        )));
    }
    if records.len() % BYTES != 0 {
        return Err(wrong("its last decision is cut off".into()));
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
        let records = read_decisions(&path).expect("a log");
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
            let error = read_decisions(&path).expect_err(says);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
