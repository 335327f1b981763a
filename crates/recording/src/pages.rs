// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at the header of every page before the Parquet library does: it would reserve whatever memory a header asks
//! for, and not each of its decoders bears any bytes.
//!
//! A page header is a Thrift struct in the compact protocol (parquet-format, `PageHeader`): field 1 type, 2 size
//! uncompressed, 3 size compressed, then a struct by type: 5 for a data page (1 number of values, 2 encoding, 3 and 4
//! encodings of the levels), 7 for a dictionary (1 number of values, 2 encoding). Other pages are never written.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
};

/// Most bytes that a page of ours takes: a page is closed after 1 MiB, and its last batch holds 1,024 values.
const PAGE_BYTES_MAX: i64 = 4 << 20;
/// `PageType`.
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
/// `Encoding`.
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;
/// Fields of `PageHeader`.
const FIELD_DATA: i64 = 5;
const FIELD_DICTIONARY: i64 = 7;

/// Checks the pages in `length` bytes from `begin`: together they hold `rows` values.
///
/// # Errors
/// A header that is none, a page of a kind or size that is never written, pages that do not fill those bytes exactly.
pub(crate) fn check(file: &File, begin: u64, length: u64, rows: u64) -> io::Result<()> {
    let mut input = BufReader::new(file.try_clone()?);
    input.seek(SeekFrom::Start(begin))?;
    let (mut left, mut values) = (length, 0);
    let mut before = Before::Nothing;
    while left > 0 {
        let mut header = Header {
            input: (&mut input).take(left),
            outer: [None; 4],
            inner: [None; 5],
        };
        header.structure(None)?;
        left = header.input.limit();
        let (outer, inner) = (header.outer, header.inner);
        let (in_page, now) = page(outer, inner, before, rows)
            .ok_or_else(|| broken("a page of a kind or size that is never written"))?;
        values += in_page;
        before = now;
        let compressed = outer[3].unwrap_or_default().unsigned_abs();
        left = left
            .checked_sub(compressed)
            .ok_or_else(|| broken("a page that goes beyond its column"))?;
        input.seek_relative(compressed as i64)?;
    }
    match values == rows {
        true => Ok(()),
        false => Err(broken("pages with another number of values than rows")),
    }
}

/// What of a column was seen before a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Dictionary,
    PlainOnly,
}

/// How many rows the page holds, and what was seen after it; `None`: we do not write such pages.
fn page(
    outer: [Option<i64>; 4],
    inner: [Option<i64>; 5],
    before: Before,
    rows: u64,
) -> Option<(u64, Before)> {
    let sizes = [outer[2]?, outer[3]?];
    if !sizes.iter().all(|size| (0..=PAGE_BYTES_MAX).contains(size)) {
        return None;
    }
    let values = u64::try_from(inner[1]?)
        .ok()
        .filter(|&values| values <= rows)?;
    let levels = inner[3] == Some(RLE) && inner[4] == Some(RLE) && values > 0;
    match (outer[1]?, inner[2]?) {
        (DICTIONARY_PAGE, PLAIN | PLAIN_DICTIONARY) if before == Before::Nothing => {
            Some((0, Before::Dictionary))
        }
        (DATA_PAGE, PLAIN_DICTIONARY | RLE_DICTIONARY) if levels => {
            (before == Before::Dictionary).then_some((values, before))
        }
        (DATA_PAGE, PLAIN) if levels => {
            let after = match before {
                Before::Nothing => Before::PlainOnly,
                seen => seen,
            };
            Some((values, after))
        }
        _ => None,
    }
}

struct Header<'file> {
    input: io::Take<&'file mut BufReader<File>>,
    /// Integer fields 0 to 3 of `PageHeader`.
    outer: [Option<i64>; 4],
    /// Integer fields 0 to 4 of the struct in it.
    inner: [Option<i64>; 5],
}

impl Header<'_> {
    /// Reads a struct that stands in field `within` of the outermost; `None`: the outermost itself.
    fn structure(&mut self, within: Option<i64>) -> io::Result<()> {
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
            self.value(byte & 0xf, within, field)?;
        }
    }

    fn value(&mut self, kind: u8, within: Option<i64>, field: i64) -> io::Result<()> {
        match (kind, within) {
            (1 | 2, Some(FIELD_DICTIONARY)) => Ok(()), // whether it is sorted: in the kind itself
            (5, _) => {
                let value = self.signed()?;
                let fields: &mut [Option<i64>] = match within {
                    None => &mut self.outer,
                    Some(_) => &mut self.inner,
                };
                let known = usize::try_from(field)
                    .ok()
                    .and_then(|field| fields.get_mut(field))
                    .ok_or_else(|| broken("a page header with a field that is never written"))?;
                match known.replace(value) {
                    None => Ok(()),
                    Some(_) => Err(broken("a page header that says something twice")),
                }
            }
            (12, None) if field == FIELD_DATA || field == FIELD_DICTIONARY => {
                self.structure(Some(field))
            }
            _ => Err(broken("a page header with a field that is never written")),
        }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// A zigzag number of at most 64 bits.
    fn signed(&mut self) -> io::Result<i64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(broken("a number of more than 64 bits"))
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
