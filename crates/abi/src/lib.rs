// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rust bindings of `abi/`: memory map, guest statistics, events, lock kinds. Generated; the headers are the source.
#![no_std]
#![allow(non_upper_case_globals, non_camel_case_types, missing_docs)]
// bindgen writes no safety comments.
#![allow(clippy::undocumented_unsafe_blocks)]

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// A lock that a scenario can name: its number in `abi/guest/lock_kinds.h`, always below `UNSPIN_LOCK_KIND_COUNT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockKind(u32);

impl LockKind {
    /// Every lock, in order of numbers.
    pub fn all() -> impl Iterator<Item = LockKind> {
        (0..UNSPIN_LOCK_KIND_COUNT).map(LockKind)
    }

    /// The lock of that name, as spelled in scenarios; `None` if there is none.
    pub fn from_name(name: &str) -> Option<LockKind> {
        LockKind::all().find(|kind| kind.name() == name)
    }

    /// The lock's word in scenarios and tables.
    pub fn name(self) -> &'static str {
        // SAFETY: the array has UNSPIN_LOCK_KIND_COUNT constant C strings of ASCII and `self.0` is below that.
        unsafe { core::ffi::CStr::from_ptr(unspin_lock_names[self.0 as usize]) }
            .to_str()
            .unwrap_or("?")
    }

    fn has(self, trait_bit: unspin_lock_trait) -> bool {
        // SAFETY: a constant array of UNSPIN_LOCK_KIND_COUNT numbers, and `self.0` is below that.
        unsafe { unspin_lock_traits[self.0 as usize] & trait_bit != 0 }
    }

    /// Whether readers may be inside together.
    pub fn shares(self) -> bool {
        self.has(UNSPIN_LOCK_SHARES)
    }

    /// Whether its waiters sleep as tasks.
    pub fn blocks(self) -> bool {
        self.has(UNSPIN_LOCK_BLOCKS)
    }

    /// Whether no unlock accesses the lock once another may have it.
    pub fn frees_last(self) -> bool {
        self.has(UNSPIN_LOCK_FREES_LAST)
    }

    /// Whether its waiters halt their vCPU.
    pub fn parks(self) -> bool {
        self.has(UNSPIN_LOCK_PARKS)
    }

    /// Whether it promises first come, first served.
    pub fn is_in_order(self) -> bool {
        self.has(UNSPIN_LOCK_IN_ORDER)
    }

    /// The number that goes into `unspin_guest_parameters.lock_kind`.
    pub fn number(self) -> u32 {
        self.0
    }
}
