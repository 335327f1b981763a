// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is compared: our locks, and those that people use today (`c/baselines.h`).

use std::ffi::CStr;

use lock_api::RawMutex as _;
use parking_lot::RawMutex;
use unspin_abi::LockKind;

use crate::ffi::{self, Driver};

/// One lock of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// One of `locks/`.
    Ours(LockKind),
    /// A baseline, by its number in `c/baselines.h`; below `BASELINE_COUNT` and in this build.
    Baseline(usize),
}

impl From<LockKind> for Contender {
    fn from(kind: LockKind) -> Contender {
        Contender::Ours(kind)
    }
}

impl Contender {
    /// Every baseline that this build has.
    pub fn baselines() -> impl Iterator<Item = Contender> {
        (0..ffi::BASELINE_COUNT)
            // SAFETY: a constant table; the index is below its length.
            .filter(|&number| unsafe { ffi::baseline_table[number] }.is_some())
            .map(Contender::Baseline)
    }

    /// Names of the baselines that this build lacks.
    pub fn missing_baselines() -> Vec<&'static str> {
        (0..ffi::BASELINE_COUNT)
            // SAFETY: a constant table; the index is below its length.
            .filter(|&number| unsafe { ffi::baseline_table[number] }.is_none())
            .map(baseline_name)
            .collect()
    }

    /// The lock of that name: ours, or a baseline of this build.
    pub fn from_name(name: &str) -> Option<Contender> {
        LockKind::from_name(name)
            .map(Contender::Ours)
            .or_else(|| Contender::baselines().find(|baseline| baseline.name() == name))
    }

    /// Its word on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Contender::Ours(kind) => kind.name(),
            Contender::Baseline(number) => baseline_name(number),
        }
    }

    /// Whether it is not ours.
    pub fn is_baseline(self) -> bool {
        matches!(self, Contender::Baseline(_))
    }

    /// Its C drivers.
    pub(crate) fn driver(self) -> &'static Driver {
        match self {
            // SAFETY: constant table with one entry per kind, and kinds are below its length.
            Contender::Ours(kind) => unsafe { ffi::driver_table[kind.number() as usize] },
            Contender::Baseline(number) => {
                // SAFETY: constant table; baselines() gives numbers that are in it.
                let driver = unsafe { ffi::baseline_table[number] };
                driver.expect("a baseline of this build")
            }
        }
    }
}

fn baseline_name(number: usize) -> &'static str {
    // SAFETY: constant C strings of ASCII; the number is below BASELINE_COUNT.
    unsafe { CStr::from_ptr(ffi::baseline_names[number]) }
        .to_str()
        .unwrap_or("?")
}

/// A byte of a slot as parking_lot's mutex, which is one byte, 0 when free and nobody waits.
///
/// # Safety
/// `mutex` points to such a byte that only these functions touch, for as long as the reference lives.
unsafe fn raw<'a>(mutex: *const u8) -> &'a RawMutex {
    const _: () = assert!(size_of::<RawMutex>() == 1 && align_of::<RawMutex>() == 1);
    // SAFETY: size and alignment are asserted; RawMutex::INIT is all zero (tested below).
    unsafe { &*mutex.cast() }
}

#[unsafe(no_mangle)]
extern "C" fn unspin_parking_lot_lock(mutex: *mut u8) {
    // SAFETY: the driver's slot: parking_lot_init() made it 0, only these functions touch it, and it outlives the call.
    unsafe { raw(mutex) }.lock();
}

#[unsafe(no_mangle)]
extern "C" fn unspin_parking_lot_trylock(mutex: *mut u8) -> u8 {
    // SAFETY: the driver's slot: parking_lot_init() made it 0, only these functions touch it, and it outlives the call.
    unsafe { raw(mutex) }.try_lock().into()
}

#[unsafe(no_mangle)]
extern "C" fn unspin_parking_lot_is_locked(mutex: *const u8) -> u8 {
    // SAFETY: the driver's slot: parking_lot_init() made it 0, only these functions touch it, and it outlives the call.
    unsafe { raw(mutex) }.is_locked().into()
}

#[unsafe(no_mangle)]
extern "C" fn unspin_parking_lot_unlock(mutex: *mut u8) {
    // SAFETY: the driver's slot as above, which this thread has locked.
    unsafe { raw(mutex).unlock() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_parking_lot_mutex_is_zero() {
        let mutex = RawMutex::INIT;
        // SAFETY: one byte, as asserted above, initialised.
        let byte = unsafe { *(&raw const mutex).cast::<u8>() };
        assert_eq!(byte, 0);
    }

    #[test]
    fn names_find_what_they_name() {
        let all = LockKind::all()
            .map(Contender::Ours)
            .chain(Contender::baselines());
        for contender in all {
            assert_eq!(Contender::from_name(contender.name()), Some(contender));
            // SAFETY: a string literal.
            let driver = unsafe { CStr::from_ptr(contender.driver().name) };
            assert_eq!(driver.to_str(), Ok(contender.name()));
        }
        for missing in Contender::missing_baselines() {
            assert_eq!(Contender::from_name(missing), None);
        }
        assert_eq!(Contender::from_name("mutexx"), None);
    }
}
