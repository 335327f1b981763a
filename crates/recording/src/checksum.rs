// SPDX-License-Identifier: MIT OR Apache-2.0
//! A segment carries a checksum of itself: XXH64 over the whole file, in which the checksum's own digits stand as zeroes.
//!
//! Parquet's footer has none, and a changed byte there or in a page could pass for another number. The digits are the
//! value of a key in the footer's metadata, so the file stays plain Parquet; they are found without parsing anything.

use std::{
    fs::File,
    hash::Hasher,
    io::{self, Read, Seek, SeekFrom, Write},
};

use twox_hash::XxHash64;

const MARK: &str = "xxh64:";
const DIGITS: usize = 16;
/// How far from the end the digits are looked for. Behind them stand only "created by", the order of 14 columns and the
/// length: some 60 bytes.
const TAIL_BYTES: u64 = 1024;
const READ_BYTES: usize = 64 << 10;

/// The value to write first; [`Checked::seal`] replaces its digits.
pub fn placeholder() -> String {
    format!("{MARK}{:0DIGITS$x}", 0)
}

/// A file that is hashed while it is written.
pub struct Checked {
    file: File,
    hash: XxHash64,
}

impl Checked {
    /// Everything that is written to `file` from now on, its beginning.
    pub fn new(file: File) -> Checked {
        Checked {
            file,
            hash: XxHash64::with_seed(0),
        }
    }

    /// Puts the digits where the placeholder stands, and the file onto the disk.
    ///
    /// # Errors
    /// What the system says, or that there is no placeholder.
    pub fn seal(mut self) -> io::Result<()> {
        let at = digits_at(&mut self.file)?;
        self.file.seek(SeekFrom::Start(at))?;
        let digits = format!("{:0DIGITS$x}", self.hash.finish());
        self.file.write_all(digits.as_bytes())?;
        self.file.sync_data()
    }
}

impl Write for Checked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether the file is what was sealed; `Ok(false)`: some byte differs, or some are missing.
///
/// # Errors
/// When it cannot be read, or holds no checksum.
pub fn is_whole(file: &mut File) -> io::Result<bool> {
    let at = digits_at(file)?;
    let mut digits = [0; DIGITS];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut digits)?;
    let mut hash = XxHash64::with_seed(0);
    file.seek(SeekFrom::Start(0))?;
    hash_next(file, at, &mut hash)?;
    hash.write(&[b'0'; DIGITS]);
    file.seek(SeekFrom::Current(DIGITS as i64))?;
    hash_next(file, u64::MAX, &mut hash)?;
    Ok(digits == *format!("{:0DIGITS$x}", hash.finish()).as_bytes())
}

/// Hashes the next `bytes` bytes, or up to the end.
fn hash_next(file: &mut File, bytes: u64, hash: &mut XxHash64) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    let mut rest = file.take(bytes);
    loop {
        match rest.read(&mut buffer)? {
            0 => return Ok(()),
            got => hash.write(&buffer[..got]),
        }
    }
}

/// Where the digits stand: behind the last mark.
fn digits_at(file: &mut File) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    let begin = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    tail.windows(MARK.len())
        .rposition(|window| window == MARK.as_bytes())
        .map(|place| place + MARK.len())
        .filter(|place| place + DIGITS <= tail.len())
        .map(|place| begin + place as u64)
        .ok_or_else(|| {
            let message = "cut off, or not written by unspin: it holds no checksum";
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let mut file = tempfile::tempfile().expect("a file");
        let mut checked = Checked::new(file.try_clone().expect("a descriptor"));
        let text = format!("PAR1 some bytes {} and more PAR1", placeholder());
        checked.write_all(text.as_bytes()).expect("written");
        checked.seal().expect("sealed");
        assert!(is_whole(&mut file).expect("readable"));
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).expect("start");
        file.read_to_end(&mut bytes).expect("readable");
        assert_eq!(bytes.len(), text.len());
        for place in 0..bytes.len() {
            for changed in (0..8).map(|bit| bytes[place] ^ 1 << bit) {
                let mut other = bytes.clone();
                other[place] = changed;
                assert!(!whole(&other), "byte {place}");
            }
            assert!(!whole(&bytes[..place]), "cut at {place}");
        }
    }

    fn whole(bytes: &[u8]) -> bool {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        is_whole(&mut file).unwrap_or(false)
    }
}
