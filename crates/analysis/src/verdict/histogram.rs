// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lengths by power of two.

/// How many powers: up to 2^40 ns, 18 minutes; what is longer counts there.
pub const POWERS: usize = 41;

/// Lengths, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    counts: [u64; POWERS],
}

impl Default for Lengths {
    fn default() -> Lengths {
        Lengths {
            counts: [0; POWERS],
        }
    }
}

impl Lengths {
    /// One more.
    pub fn add(&mut self, length_ns: u64) {
        let power = length_ns.checked_ilog2().unwrap_or(0) as usize;
        self.counts[power.min(POWERS - 1)] += 1;
    }

    /// How many there are from 2^i ns to below 2^(i+1) ns; the first has those of 0, too.
    pub fn counts(&self) -> &[u64; POWERS] {
        &self.counts
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_by_power() {
        let mut lengths = Lengths::default();
        for ns in [0, 1, 2, 3, 4, 1_023, 1_024, u64::MAX] {
            lengths.add(ns);
        }
        assert_eq!(lengths.counts()[..3], [2, 2, 1]);
        assert_eq!(
            (
                lengths.counts()[9],
                lengths.counts()[10],
                lengths.counts()[POWERS - 1]
            ),
            (1, 1, 1)
        );
        assert_eq!(lengths.total(), 8);
    }
}
