// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lib/preload counts in a program (`abi/preload/report.h`): a file that the program's processes map, and what is read from
//! it when they have ended.

use std::{collections::BTreeMap, ffi::CStr, fs, io::Write, path::Path};

use unspin_abi as abi;

use crate::{Error, symbols::Symbols};

const HEADER_BYTES: usize = std::mem::offset_of!(abi::unspin_preload_report, locks);
const LOCK_BYTES: usize = size_of::<abi::unspin_preload_lock>();

/// Kinds of objects, by `enum unspin_preload_kind`.
const KINDS: [&str; 7] = [
    "mutex",
    "recursive mutex",
    "error-checking mutex",
    "adaptive mutex",
    "condition variable",
    "rwlock",
    "spinlock",
];

/// An object for which calls have waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotLock {
    /// What it is, in words.
    pub kind: &'static str,
    /// Its address in its process.
    pub address: u64,
    /// Number of that process.
    pub process: u64,
    /// Path of the program or library that made the first call that waited; empty: unknown.
    pub module: String,
    /// Where that call returns to, from the beginning of that file's addresses.
    pub offset: u64,
    /// The function there, if the file names it.
    pub symbol: Option<String>,
    /// Calls that waited.
    pub contended: u64,
    /// Sleeps in the kernel.
    pub parks: u64,
    /// Waits in which the holder was seen not to run.
    pub preempted: u64,
}

/// Objects that were left to libc, initialised so often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Robust mutexes.
    pub robust: u64,
    /// Mutexes with priority inheritance or protection.
    pub priority: u64,
    /// Mutexes that processes share.
    pub shared_mutexes: u64,
    /// Condition variables that processes share.
    pub shared_conditions: u64,
    /// Reader-writer locks that processes share.
    pub shared_rwlocks: u64,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Processes that have loaded the library, forked ones included.
    pub processes: u64,
    /// Waits that found no place to be counted for their lock.
    pub dropped: u64,
    /// What was left to libc.
    pub passed: Passed,
    /// Those that calls have waited for most come first.
    pub locks: Vec<HotLock>,
}

/// The file while the program runs; it goes away with this.
pub(crate) struct ReportFile(tempfile::NamedTempFile);

impl ReportFile {
    /// A file in which nothing is counted yet.
    pub fn new() -> Result<ReportFile, Error> {
        let failed = |error| Error::Unwritable(std::env::temp_dir(), error);
        let mut file = tempfile::NamedTempFile::with_prefix("unspin-preload-").map_err(failed)?;
        let magic = abi::UNSPIN_PRELOAD_MAGIC.to_ne_bytes();
        file.write_all(&magic).map_err(failed)?;
        let bytes = size_of::<abi::unspin_preload_report>() as u64;
        file.as_file().set_len(bytes).map_err(failed)?;
        Ok(ReportFile(file))
    }

    /// Its path, for the program.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// What was counted so far, with the names of functions.
    pub fn read(&self) -> Result<Report, Error> {
        let bytes = fs::read(self.path())
            .map_err(|error| Error::Unreadable(self.path().to_owned(), error))?;
        let mut report = parse(&bytes);
        let mut symbols = Symbols::default();
        for lock in &mut report.locks {
            lock.symbol = symbols.name(&lock.module, lock.offset);
        }
        Ok(report)
    }
}

/// Reads the file's bytes. Whoever wrote them is not trusted: numbers of kinds and strings are checked, and a short file has
/// fewer locks.
fn parse(bytes: &[u8]) -> Report {
    let word = |at: usize| {
        let word = bytes.get(at..at + 8);
        word.map_or(0, |word| {
            u64::from_ne_bytes(word.try_into().expect("8 bytes"))
        })
    };
    let passed = |kind: u32| {
        word(std::mem::offset_of!(abi::unspin_preload_report, passed) + 8 * kind as usize)
    };
    let mut locks: BTreeMap<(u64, u64), HotLock> = BTreeMap::new();
    for chunk in bytes
        .get(HEADER_BYTES..)
        .unwrap_or_default()
        .chunks_exact(LOCK_BYTES)
    {
        let Some(lock) = parse_lock(chunk) else {
            continue;
        };
        locks
            .entry((lock.process, lock.address))
            .and_modify(|first| {
                first.contended += lock.contended;
                first.parks += lock.parks;
                first.preempted += lock.preempted;
            })
            .or_insert(lock);
    }
    let mut locks: Vec<HotLock> = locks.into_values().collect();
    locks.sort_by_key(|lock| std::cmp::Reverse(lock.contended));
    Report {
        processes: word(std::mem::offset_of!(abi::unspin_preload_report, processes)),
        dropped: word(std::mem::offset_of!(abi::unspin_preload_report, dropped)),
        passed: Passed {
            robust: passed(abi::UNSPIN_PRELOAD_PASSED_ROBUST),
            priority: passed(abi::UNSPIN_PRELOAD_PASSED_PRIORITY),
            shared_mutexes: passed(abi::UNSPIN_PRELOAD_PASSED_SHARED_MUTEX),
            shared_conditions: passed(abi::UNSPIN_PRELOAD_PASSED_SHARED_CONDITION),
            shared_rwlocks: passed(abi::UNSPIN_PRELOAD_PASSED_SHARED_RWLOCK),
        },
        locks,
    }
}

/// A filled place; `None`: it has no lock, or one of no known kind.
fn parse_lock(chunk: &[u8]) -> Option<HotLock> {
    assert_eq!(chunk.len(), LOCK_BYTES);
    // SAFETY: the chunk has the struct's size, and every value of its bytes is one of the struct: integers and characters.
    let lock: abi::unspin_preload_lock = unsafe { std::ptr::read_unaligned(chunk.as_ptr().cast()) };
    if lock.place != abi::UNSPIN_PRELOAD_FILLED {
        return None;
    }
    let module: Vec<u8> = lock.module.iter().map(|&byte| byte as u8).collect();
    let module = CStr::from_bytes_until_nul(&module).ok()?;
    Some(HotLock {
        kind: KINDS.get(lock.kind as usize)?,
        address: lock.address,
        process: lock.process,
        module: module.to_string_lossy().into_owned(),
        offset: lock.site,
        symbol: None,
        contended: lock.contended,
        parks: lock.parks,
        preempted: lock.preempted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(address: u64, contended: u64) -> Vec<u8> {
        let mut lock = vec![0u8; LOCK_BYTES];
        lock[0..4].copy_from_slice(&2u32.to_ne_bytes());
        lock[4..8].copy_from_slice(&1u32.to_ne_bytes());
        lock[8..16].copy_from_slice(&address.to_ne_bytes());
        lock[24..32].copy_from_slice(&contended.to_ne_bytes());
        lock
    }

    #[test]
    fn places_of_one_lock_are_added_up_and_the_hottest_comes_first() {
        let mut bytes = vec![0; HEADER_BYTES];
        for part in [lock(0x10, 1), lock(0x20, 5), lock(0x10, 2)] {
            bytes.extend(part);
        }
        bytes.extend(vec![0; LOCK_BYTES]);
        let report = parse(&bytes);
        let seen: Vec<(u64, u64)> = report
            .locks
            .iter()
            .map(|lock| (lock.address, lock.contended))
            .collect();
        assert_eq!(seen, [(0x20, 5), (0x10, 3)]);
        assert_eq!(report.locks[0].kind, "recursive mutex");
    }

    #[test]
    fn bytes_that_make_no_sense_are_left_out() {
        assert_eq!(parse(&[]), Report::default());
        assert_eq!(parse(&[0xff; 40]).locks, []);
        let mut bytes = vec![0; HEADER_BYTES];
        let mut unknown = lock(0x10, 1);
        unknown[4..8].copy_from_slice(&99u32.to_ne_bytes());
        bytes.extend(unknown);
        let mut unterminated = lock(0x20, 1);
        unterminated[72..].fill(b'x');
        bytes.extend(unterminated);
        bytes.extend(&lock(0x30, 1)[..100]);
        assert_eq!(parse(&bytes).locks, []);
    }

    #[test]
    fn a_new_file_has_the_magic_and_nothing_else() {
        let file = ReportFile::new().expect("written");
        let bytes = fs::read(file.path()).expect("read");
        assert_eq!(&bytes[..8], b"unspinP1");
        assert_eq!(bytes.len(), size_of::<abi::unspin_preload_report>());
        assert_eq!(file.read().expect("read"), Report::default());
    }
}
