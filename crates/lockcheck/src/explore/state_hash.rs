// SPDX-License-Identifier: MIT OR Apache-2.0
//! How states are told apart: by 128 bits, which a map of them takes as they are.

use std::hash::Hasher;

/// Passes 128 bits on that are a hash already.
#[derive(Default)]
pub(super) struct Low(u64);

impl Hasher for Low {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

/// 128 bits of `bytes`: two tracks, each a chain of steps that lose nothing (xor, odd product, shift).
pub(super) fn hash(bytes: &[u8]) -> u128 {
    let (mut a, mut b) = (bytes.len() as u64, 0x243f_6a88_85a3_08d3_u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        a = (a ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        a ^= a >> 32;
        b = (b ^ word.rotate_left(29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        b ^= b >> 29;
    }
    u128::from(a.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ b >> 31) << 64 | u128::from(b ^ a)
}
