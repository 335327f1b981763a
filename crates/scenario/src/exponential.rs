// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exponential distribution of mean 1 in integers: the same table on every machine and with every compiler.

use unspin_abi::UNSPIN_QUANTILES;

const COUNT: usize = UNSPIN_QUANTILES as usize;
/// Fractional bits of [`CUMULATIVE`].
pub(crate) const FRACTION_BITS: u32 = 32;
/// Fractional bits while computing; a square of 1.62 bits still fits in a u128.
const WORKING_BITS: u32 = 60;
/// ln 2 with `WORKING_BITS` fractional bits, rounded: 0.693147180559945309 * 2^60.
const LN_2: u128 = 799_144_290_325_165_979;

/// Entry i is the sum of the means of the first i 256ths of the probability mass, with `FRACTION_BITS` fractional
/// bits; entry 256 is 256 (their mean is 1).
///
/// With S = 1 - i/256 the mass up to quantile i has the partial expectation 1 - S * (1 - ln S).
pub(crate) const CUMULATIVE: [u64; COUNT + 1] = cumulative();

const fn cumulative() -> [u64; COUNT + 1] {
    let mut table = [0; COUNT + 1];
    let mut i = 1;
    while i < COUNT {
        let survivors = (COUNT - i) as u128;
        // 1 - ln(survivors / 256) = 1 + log2(256 / survivors) * ln 2
        let minus_log2 = (8u128 << WORKING_BITS) - log2(survivors as u64) as u128;
        let factor = (1u128 << WORKING_BITS) + ((minus_log2 * LN_2) >> WORKING_BITS);
        let sum = ((COUNT as u128) << WORKING_BITS) - survivors * factor;
        table[i] = (sum >> (WORKING_BITS - FRACTION_BITS)) as u64;
        i += 1;
    }
    table[COUNT] = (COUNT as u64) << FRACTION_BITS;
    table
}

/// log2(n) with `WORKING_BITS` fractional bits, truncated; n in 1..=256. A bit per squaring.
const fn log2(n: u64) -> u64 {
    let whole = n.ilog2();
    let mut result = (whole as u64) << WORKING_BITS;
    // n / 2^whole, in [1, 2): bits 60..=60, so the square has at most 122 bits.
    let mut x = (n as u128) << (WORKING_BITS - whole);
    let mut bit = WORKING_BITS;
    while bit > 0 {
        bit -= 1;
        x = (x * x) >> WORKING_BITS;
        if x >> (WORKING_BITS + 1) != 0 {
            x >>= 1;
            result |= 1 << bit;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_agree_with_floating_point() {
        for n in 1..=256 {
            let got = log2(n) as f64 / 2f64.powi(60);
            assert!((got - (n as f64).log2()).abs() < 1e-12, "{n}: {got}");
        }
    }

    #[test]
    fn sums_agree_with_floating_point() {
        for (i, &sum) in CUMULATIVE.iter().enumerate() {
            let s = 1.0 - i as f64 / 256.0;
            let expected = if s > 0.0 {
                256.0 * (1.0 - s * (1.0 - s.ln()))
            } else {
                256.0
            };
            let got = sum as f64 / 2f64.powi(32);
            assert!((got - expected).abs() < 1e-8, "{i}: {got} {expected}");
        }
    }
}
