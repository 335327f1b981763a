// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pseudo-random numbers from a seed.

/// splitmix64 (Steele, Lea and Flood 2014), as in `locks/parts/work.h`: period 2^64; any state is a valid seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in 0..count, uniform but for a bias below count / 2^64; `count` is above 0.
    pub const fn below(&mut self, count: u64) -> u64 {
        ((self.bits() as u128 * count as u128) >> 64) as u64
    }
}
