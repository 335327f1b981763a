// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks with a bug planted in each copy, for the tests of `crates/lockcheck`: a checker that finds nothing in good locks
//! must find these. Nothing but tests depends on this crate, so that nothing else waits for the copies to be compiled.

use std::{ffi::c_void, ptr::NonNull};

/// One seeded bug: a table of `crates/lockcheck/tests/bugs/`.
#[derive(Debug)]
pub struct Bug {
    /// What is wrong.
    pub name: &'static str,
    /// The lock whose proof must fail: a word of `abi/guest/lock_kinds.h`, or `rcu`.
    pub lock: &'static str,
    /// The header of `locks/` that was changed.
    pub file: &'static str,
    /// A program for each thread that shows it.
    pub programs: &'static [&'static str],
    /// Names of faults, of which at least one must be found.
    pub finds: &'static [&'static str],
    /// Whether order is to be checked.
    pub is_fifo: bool,
    /// The scripted world around that copy: a `struct script_calls`. `None`: the text to change is not in the header (exactly once).
    pub calls: Option<NonNull<c_void>>,
}

// SAFETY (all): the tables are constants of script.c; only their addresses are taken.
#[allow(clippy::undocumented_unsafe_blocks)]
mod generated {
    use super::{Bug, NonNull, c_void};
    include!(concat!(env!("OUT_DIR"), "/bugs.rs"));
}
pub use generated::all;
