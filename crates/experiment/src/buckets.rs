// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms by powers of two, as guests keep them of their waits.

/// Adds the counts of one histogram to those of others.
pub fn add_buckets(sums: &mut Vec<u64>, counts: &[u64]) {
    sums.resize(sums.len().max(counts.len()), 0);
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.saturating_add(*count);
    }
}

/// Bucket b holds 2^b to 2^(b+1) cycles (`abi/guest/memory.h`): the upper bound of the one with this rank; `None` when all are
/// empty.
pub fn percentile_cycles(counts: &[u64], per_mille: u32) -> Option<f64> {
    let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
    let rank = (total * u128::from(per_mille)).div_ceil(1_000).max(1);
    let mut below = 0;
    for (bucket, &count) in counts.iter().enumerate() {
        below += u128::from(count);
        if below >= rank {
            return Some(2f64.powi(bucket as i32 + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_upper_bound_of_its_bucket() {
        let mut counts = [0; 64];
        assert_eq!(percentile_cycles(&counts, 500), None);
        (counts[10], counts[20], counts[63]) = (94, 5, 1);
        for (per_mille, power) in [
            (1, 11),
            (500, 11),
            (940, 11),
            (941, 21),
            (990, 21),
            (1_000, 64),
        ] {
            let seen = percentile_cycles(&counts, per_mille);
            assert_eq!(seen, Some(2f64.powi(power)), "{per_mille}");
        }
    }
}
