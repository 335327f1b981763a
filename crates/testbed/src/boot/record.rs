// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of boots in the cache, from which a suite tells whether too many of them fail.
//!
//! `state/boots.tsv`, one line per boot, appended in one write so that parallel runs do not mix:
//! `unix time <TAB> timed|deterministic <TAB> qemu-stock|qemu-unspin|bochs <TAB> ok|boot-hung|stalled|time-limit|panicked`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Failure};
use crate::options::{Options, Vendor};

/// Boots since some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootRecord {
    /// All of them, first attempts and retries.
    pub boots: u64,
    /// Those that hung or panicked.
    pub failures: u64,
}

impl BootRecord {
    /// More than 1 boot in 20 failed: the limit at which a suite fails. One failure alone never is too many.
    pub fn too_many(&self) -> bool {
        self.failures > 1 && self.failures * 20 > self.boots
    }
}

fn path(cache: &Path) -> PathBuf {
    cache.join("state/boots.tsv")
}

/// Appends one boot.
///
/// # Errors
/// [`Error::File`].
pub fn append(options: &Options, failure: Option<&Failure>) -> Result<(), Error> {
    let path = path(&options.cache);
    let error = |source| Error::File {
        doing: "writing",
        path: path.clone(),
        source,
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs();
    let mode = if options.is_deterministic() {
        "deterministic"
    } else {
        "timed"
    };
    let line = format!(
        "{now}\t{mode}\t{}\t{}\n",
        match options.vendor {
            Vendor::Amd => options.qemu.file_name(),
            Vendor::Intel => "bochs",
        },
        failure.map_or("ok", Failure::word)
    );
    std::fs::create_dir_all(path.parent().expect("a file in a folder")).map_err(error)?;
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .map_err(error)?;
    file.write_all(line.as_bytes()).map_err(error)
}

/// Counts the boots recorded at or after `since`; a cache without a record has none.
///
/// # Errors
/// [`Error::File`].
pub fn boot_record(cache: &Path, since: SystemTime) -> Result<BootRecord, Error> {
    let path = path(cache);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => {
            return Err(Error::File {
                doing: "reading",
                path,
                source,
            });
        }
    };
    let since_seconds = since
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs();
    let mut record = BootRecord::default();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let time = fields.next().and_then(|field| field.parse::<u64>().ok());
        if time.is_some_and(|time| time >= since_seconds) {
            record.boots += 1;
            record.failures += u64::from(fields.nth(2) != Some("ok"));
        }
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_and_failures_are_counted_from_a_moment_on() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(
            boot_record(cache.path(), UNIX_EPOCH).expect("empty"),
            BootRecord::default()
        );
        let options = Options::new(cache.path().into());
        append(&options, None).expect("writable");
        append(&options, Some(&Failure::Panicked(String::new()))).expect("writable");
        append(&options, Some(&Failure::BootHung(Duration::from_secs(1)))).expect("writable");
        let all = boot_record(cache.path(), UNIX_EPOCH).expect("readable");
        assert_eq!(
            all,
            BootRecord {
                boots: 3,
                failures: 2
            }
        );
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(
            boot_record(cache.path(), later).expect("readable"),
            BootRecord::default()
        );
    }

    #[test]
    fn one_in_twenty_is_the_limit() {
        for (boots, failures, too_many) in [
            (1, 1, false),
            (40, 2, false),
            (39, 2, true),
            (20, 0, false),
            (2, 2, true),
        ] {
            assert_eq!(
                BootRecord { boots, failures }.too_many(),
                too_many,
                "{failures} of {boots}"
            );
        }
    }
}
