// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at the header of every page before the Parquet library does: it would reserve whatever memory a header asks for.
//!
//! A page header is a Thrift struct in the compact protocol (parquet-format, `PageHeader`): field 1 type, 2 size
//! uncompressed, 3 size compressed, then structs by type of which nothing is needed here.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
};

/// Most bytes that a page of ours takes: a page is closed after 1 MiB, and its last batch holds 1,024 values.
const PAGE_BYTES_MAX: u64 = 4 << 20;
/// Ours have two levels of structs.
const DEPTH_MAX: u32 = 8;

/// Checks the pages in `length` bytes from `begin`.
///
/// # Errors
/// A header that is none, a page that is too big, pages that do not fill those bytes exactly.
pub(crate) fn check(file: &File, begin: u64, length: u64) -> io::Result<()> {
    let mut input = BufReader::new(file.try_clone()?);
    input.seek(SeekFrom::Start(begin))?;
    let mut left = length;
    while left > 0 {
        let mut header = Header {
            input: (&mut input).take(left),
            sizes: [None; 4],
        };
        header.structure(0)?;
        let after = header.input.limit();
        let size = |field: usize| {
            header.sizes[field]
                .and_then(|size| u64::try_from(size).ok())
                .filter(|&size| size <= PAGE_BYTES_MAX)
        };
        let (Some(_), Some(compressed)) = (size(2), size(3)) else {
            return Err(broken("a page without a size, or a size beyond 4 MiB"));
        };
        left = after
            .checked_sub(compressed)
            .ok_or_else(|| broken("a page that goes beyond its column"))?;
        input.seek_relative(compressed as i64)?;
    }
    Ok(())
}

struct Header<'file> {
    input: io::Take<&'file mut BufReader<File>>,
    /// Values of the integer fields 0 to 3 of the outermost struct.
    sizes: [Option<i64>; 4],
}

impl Header<'_> {
    fn structure(&mut self, depth: u32) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(broken("a page header of too many levels"));
        }
        let mut field = 0i64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            field = match byte >> 4 {
                0 => self.signed()?,
                step => field.saturating_add(i64::from(step)),
            };
            self.value(byte & 0xf, depth, field)?;
        }
    }

    fn value(&mut self, kind: u8, depth: u32, field: i64) -> io::Result<()> {
        match kind {
            1 | 2 => {} // a truth value, in the kind itself
            3 => {
                self.byte()?;
            }
            4..=6 => {
                let value = self.signed()?;
                let size = usize::try_from(field)
                    .ok()
                    .and_then(|field| self.sizes.get_mut(field));
                if let (0, Some(size)) = (depth, size) {
                    *size = Some(value);
                }
            }
            7 => self.skip(8)?,
            8 => {
                let length = self.unsigned()?;
                self.skip(length)?;
            }
            12 => self.structure(depth + 1)?,
            _ => return Err(broken("a page header with a field that pages do not have")),
        }
        Ok(())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn unsigned(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(broken("a number of more than 64 bits"))
    }

    /// Zigzag.
    fn signed(&mut self) -> io::Result<i64> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.input).take(bytes), &mut io::sink())?;
        match skipped == bytes {
            true => Ok(()),
            false => Err(broken("a page header that is cut off")),
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
