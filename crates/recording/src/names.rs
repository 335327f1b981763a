// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of a recording's files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::Error;

/// The description.
pub(crate) const MANIFEST: &str = "recording.json";
const PREFIX: &str = "events-";
const SUFFIX: &str = ".parquet";
/// What a file is called until it is whole.
pub(crate) const PARTIAL: &str = ".partial";

/// A segment, or several merged into one: they hold the segments `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub first: u32,
    pub last: u32,
}

impl SegmentName {
    /// A segment as it is written first.
    pub fn single(number: u32) -> SegmentName {
        SegmentName {
            first: number,
            last: number,
        }
    }

    /// `events-000007.parquet` or `events-000000-000059.parquet`.
    pub fn file(self) -> String {
        let SegmentName { first, last } = self;
        if first == last {
            format!("{PREFIX}{first:06}{SUFFIX}")
        } else {
            format!("{PREFIX}{first:06}-{last:06}{SUFFIX}")
        }
    }

    /// The inverse; `None`: no segment.
    pub fn parse(file: &str) -> Option<SegmentName> {
        let numbers = file.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let number = |digits: &str| {
            let only = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
            only.then(|| digits.parse().ok())?
        };
        let name = SegmentName {
            first: number(first)?,
            last: number(last)?,
        };
        (name.first <= name.last && name.file() == file).then_some(name)
    }

    /// Whether everything in `other` is also in this one.
    pub fn covers(self, other: SegmentName) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// What lies in a folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// By first number, the widest first.
    pub segments: Vec<SegmentName>,
    /// Segments that were never finished, by name.
    pub partial: Vec<String>,
}

/// Lists the folder's segments.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn list(folder: &Path) -> Result<Listing, Error> {
    let mut listing = Listing::default();
    let entries = fs::read_dir(folder).map_err(Error::io(folder, "reading the folder"))?;
    for entry in entries {
        let entry = entry.map_err(Error::io(folder, "reading the folder"))?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if let Some(segment) = SegmentName::parse(name) {
            listing.segments.push(segment);
        } else if let Some(whole) = name.strip_suffix(PARTIAL) {
            // A merged one repeats what its parts hold, so nothing is missing without it.
            if SegmentName::parse(whole).is_some_and(|segment| segment.first == segment.last) {
                listing.partial.push(name.to_owned());
            }
        }
    }
    listing
        .segments
        .sort_by_key(|name| (name.first, std::cmp::Reverse(name.last)));
    listing.partial.sort();
    Ok(listing)
}

/// Where a file is written until it is whole.
pub(crate) fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(PARTIAL);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_each_others_inverse() {
        for (first, last, file) in [
            (0, 0, "events-000000.parquet"),
            (7, 66, "events-000007-000066.parquet"),
            (1_234_567, 1_234_567, "events-1234567.parquet"),
        ] {
            let name = SegmentName { first, last };
            assert_eq!(name.file(), file);
            assert_eq!(SegmentName::parse(file), Some(name));
        }
        for other in [
            "events-1.parquet",
            "events-000002-000001.parquet",
            "events-000001-000001.parquet",
            "events-00000a.parquet",
            "events-+00001.parquet",
            "events-99999999999.parquet",
            "events-0000001.parquet",
            "events-000001.parquet.partial",
            "recording.json",
        ] {
            assert_eq!(SegmentName::parse(other), None, "{other}");
        }
    }
}
