// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps by the kernel's ids of threads and by numbers of VMs, which are asked several times for each event.
//!
//! The kernel gives ids out one after another: nobody can choose many that fall together, so they need no keyed hash.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map by id.
pub(crate) type IdMap<V> = HashMap<u32, V, BuildHasherDefault<IdHasher>>;

/// Multiplies by 2^64 / the golden ratio (Knuth, TAOCP 3, 6.4), and folds the halves: the map takes high and low bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        let product = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, Hash};

    use super::*;

    #[test]
    fn ids_one_after_another_fall_apart() {
        let build = BuildHasherDefault::<IdHasher>::default();
        let hash = |id: u32| build.hash_one(id);
        // What the map looks at: the lowest bits for the place, the highest seven for the tag.
        let places: std::collections::HashSet<u64> = (0..4096).map(|id| hash(id) & 8191).collect();
        assert!(places.len() > 2_500, "{}", places.len());
        let tags: std::collections::HashSet<u64> = (0..4096).map(|id| hash(id) >> 57).collect();
        assert_eq!(tags.len(), 128);
        let mut bytes = IdHasher::default();
        [1u8, 2].hash(&mut bytes);
        assert_ne!(bytes.finish(), 0);
    }
}
