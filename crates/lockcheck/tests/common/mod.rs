// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several test files need.
#![allow(dead_code, reason = "no test file uses all of it")]

use unspin_abi::LockKind;

/// The lock of that name.
pub fn kind(name: &str) -> LockKind {
    LockKind::from_name(name).expect("abi/guest/lock_kinds.h has it")
}

/// Words of a ticket lock and of a preemptable ticket lock, in order of their structures.
pub const TAIL: usize = 0;
/// Grants so far.
pub const HEAD: usize = 1;
/// Of the preemptable ticket lock only, as [`TAU`].
pub const TAKEN: usize = 2;
/// Spins per place in the queue.
pub const TAU: usize = 3;

/// Random numbers for tests: splitmix64, any seed.
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `limit - 1`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// True once in `of` times on average.
    pub fn once_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}
