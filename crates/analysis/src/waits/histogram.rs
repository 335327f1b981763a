// SPDX-License-Identifier: MIT OR Apache-2.0
//! A histogram of waits, by count and by time (Friebel 2008, "Time, not Times"; ruling 4).

/// Buckets of powers of two.
pub const WAIT_BUCKETS: usize = 64;

/// Bucket b holds waits of [2^b, 2^(b+1)) units; bucket 0 also those of 0. As `struct unspin_histogram` of abi/guest/memory.h.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitHistogram {
    count: [u64; WAIT_BUCKETS],
    sum: [u64; WAIT_BUCKETS],
    unit_ns: f64,
}

impl Default for WaitHistogram {
    /// Empty, in nanoseconds.
    fn default() -> WaitHistogram {
        WaitHistogram {
            count: [0; WAIT_BUCKETS],
            sum: [0; WAIT_BUCKETS],
            unit_ns: 1.0,
        }
    }
}

impl WaitHistogram {
    /// From buckets that somebody else has filled. `unit_ns`: nanoseconds of one unit, above 0.
    pub fn new(
        count: [u64; WAIT_BUCKETS],
        sum: [u64; WAIT_BUCKETS],
        unit_ns: f64,
    ) -> WaitHistogram {
        WaitHistogram {
            count,
            sum,
            unit_ns,
        }
    }

    /// Adds a wait.
    pub fn add(&mut self, units: u64) {
        let bucket = units.max(1).ilog2() as usize;
        self.count[bucket] += 1;
        self.sum[bucket] = self.sum[bucket].saturating_add(units);
    }

    /// Adds the waits of another one, in the same unit.
    pub fn merge(&mut self, other: &WaitHistogram) {
        for bucket in 0..WAIT_BUCKETS {
            self.count[bucket] = self.count[bucket].saturating_add(other.count[bucket]);
            self.sum[bucket] = self.sum[bucket].saturating_add(other.sum[bucket]);
        }
    }

    /// How many waits are in bucket `bucket`.
    pub fn count(&self, bucket: usize) -> u64 {
        self.count[bucket]
    }

    /// Their time, nanoseconds.
    pub fn time_ns(&self, bucket: usize) -> f64 {
        self.sum[bucket] as f64 * self.unit_ns
    }

    /// Where bucket `bucket` begins, nanoseconds; the first begins at 0.
    pub fn floor_ns(&self, bucket: usize) -> f64 {
        match bucket {
            0 => 0.0,
            _ => 2f64.powi(bucket as i32) * self.unit_ns,
        }
    }

    /// All waits.
    pub fn waits(&self) -> u64 {
        self.count
            .iter()
            .fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Their time, nanoseconds.
    pub fn total_ns(&self) -> f64 {
        (0..WAIT_BUCKETS).map(|bucket| self.time_ns(bucket)).sum()
    }

    /// First and last bucket with waits; `None`: there are none.
    pub fn span(&self) -> Option<(usize, usize)> {
        let first = self.count.iter().position(|&count| count > 0)?;
        let last = self.count.iter().rposition(|&count| count > 0)?;
        Some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_fall_into_their_powers_of_two() {
        let mut histogram = WaitHistogram::default();
        for wait_ns in [0, 1, 2, 3, 4, 1023, 1024, u64::MAX] {
            histogram.add(wait_ns);
        }
        let counts: Vec<u64> = [0, 1, 2, 9, 10, 63]
            .map(|bucket| histogram.count(bucket))
            .into();
        assert_eq!(counts, [2, 2, 1, 1, 1, 1]);
        assert_eq!(histogram.waits(), 8);
        assert_eq!(histogram.time_ns(1), 5.0);
        assert_eq!(histogram.span(), Some((0, 63)));
        assert_eq!(
            (histogram.floor_ns(0), histogram.floor_ns(10)),
            (0.0, 1024.0)
        );
    }

    #[test]
    fn cycles_are_told_in_nanoseconds() {
        let mut count = [0; WAIT_BUCKETS];
        let mut sum = [0; WAIT_BUCKETS];
        (count[11], sum[11]) = (2, 6_000);
        let histogram = WaitHistogram::new(count, sum, 0.5);
        assert_eq!(
            (histogram.floor_ns(11), histogram.time_ns(11)),
            (1024.0, 3000.0)
        );
        assert_eq!(histogram.total_ns(), 3000.0);
    }
}
