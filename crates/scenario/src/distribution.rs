// SPDX-License-Identifier: MIT OR Apache-2.0
//! A distribution as 256 equally likely values: what guest, threads and lab draw from.

use unspin_abi::UNSPIN_QUANTILES;

use crate::{
    exponential::{CUMULATIVE, FRACTION_BITS},
    work::{Distribution, Shape},
};

const COUNT: usize = UNSPIN_QUANTILES as usize;

impl Distribution {
    /// The mean of each 256th of the probability mass, in the distribution's own unit.
    ///
    /// Integers only, so every machine gets the same table. What rounding takes from one entry it gives to the next:
    /// the mean of the table is that of the distribution to within 1/256 of a unit, and no entry is more than
    /// one unit off. For values within `limits` every entry fits in 32 bits.
    pub fn quantile_table(&self) -> [u64; COUNT] {
        let mut table = [0; COUNT];
        let mut before = self.shape.cumulative(0);
        for (i, entry) in table.iter_mut().enumerate() {
            let after = self.shape.cumulative(i + 1);
            *entry = u64::try_from(after - before).unwrap_or(u64::MAX);
            before = after;
        }
        table
    }

    /// Whether every draw is 0.
    pub fn is_nothing(&self) -> bool {
        self.shape == Shape::Constant(0)
    }
}

impl Shape {
    /// Sum of the means of the first `count` 256ths, rounded down; grows with `count`, 0 to 256.
    fn cumulative(&self, count: usize) -> u128 {
        let n = count as u128;
        match *self {
            Shape::Constant(value) => n * u128::from(value),
            // Mean of part i: low + (high - low) * (2 i + 1) / 512; their sum is a square.
            Shape::Uniform { low, high } => {
                n * u128::from(low) + u128::from(high.saturating_sub(low)) * n * n / 512
            }
            Shape::Exponential { mean } => {
                (u128::from(mean) * u128::from(CUMULATIVE[count])) >> FRACTION_BITS
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        limits::{WORK_MAX_LOOPS, WORK_MAX_NS},
        quantity::WorkUnit,
    };

    fn table(shape: Shape) -> [u64; COUNT] {
        Distribution {
            unit: WorkUnit::Loops,
            shape,
        }
        .quantile_table()
    }

    fn mean(table: &[u64]) -> f64 {
        table.iter().sum::<u64>() as f64 / table.len() as f64
    }

    #[test]
    fn constant_is_constant() {
        assert!(table(Shape::Constant(300)).iter().all(|&v| v == 300));
        assert!(table(Shape::Constant(0)).iter().all(|&v| v == 0));
    }

    #[test]
    fn uniform_stays_inside_and_keeps_its_mean() {
        for (low, high) in [(0, 1), (1, 2), (100, 500), (7, 7), (0, WORK_MAX_LOOPS)] {
            let table = table(Shape::Uniform { low, high });
            assert!(table.iter().all(|v| (low..=high).contains(v)));
            let expected = (low + high) as f64 / 2.0;
            assert!(
                (mean(&table) - expected).abs() <= 1.0 / 256.0,
                "{low} {high}"
            );
        }
    }

    #[test]
    fn exponential_keeps_its_mean_within_a_thousandth() {
        for expected in [1, 2, 3, 10, 300, 3_000, 6_000, WORK_MAX_NS, WORK_MAX_LOOPS] {
            let got = mean(&table(Shape::Exponential { mean: expected }));
            assert!(
                (got / expected as f64 - 1.0).abs() < 0.001,
                "{expected}: {got}"
            );
        }
    }

    #[test]
    fn exponential_entries_are_conditional_means() {
        let table = table(Shape::Exponential { mean: 1_000_000 });
        let partial = |s: f64| if s > 0.0 { s * (1.0 - s.ln()) } else { 0.0 };
        for (i, &value) in table.iter().enumerate() {
            let (above, below) = (1.0 - i as f64 / 256.0, 1.0 - (i + 1) as f64 / 256.0);
            let expected = 256.0 * (partial(above) - partial(below)) * 1e6;
            assert!(
                (value as f64 - expected).abs() <= 1.5,
                "{i}: {value} {expected}"
            );
        }
        // The first and the last, by hand: about 1/512, and 1 + ln 256.
        assert!((1_950..1_960).contains(&table[0]), "{}", table[0]);
        assert!(
            (6_545_000..6_545_300).contains(&table[255]),
            "{}",
            table[255]
        );
    }

    #[test]
    fn largest_entry_fits_in_32_bits() {
        let table = table(Shape::Exponential {
            mean: WORK_MAX_LOOPS,
        });
        assert!(*table.last().expect("256 entries") <= u64::from(u32::MAX));
    }
}
