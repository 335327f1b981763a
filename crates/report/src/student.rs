// SPDX-License-Identifier: MIT OR Apache-2.0
//! Student's t distribution, as far as intervals need it.

/// Quantiles 0.975 for 1 to 30 degrees of freedom (any table of Student's t; NIST/SEMATECH e-Handbook 1.3.6.7.2).
const TABLE: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The normal distribution's quantile 0.975.
const NORMAL: f64 = 1.959_964;

/// The factor of a two-sided 95 % interval for so many degrees of freedom; infinite for 0.
///
/// Above 30 the first two terms of Cornish and Fisher's expansion, right to 0.001.
pub fn student_t_975(degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        _ => {
            let (n, z) = (degrees as f64, NORMAL);
            let first = (z.powi(3) + z) / 4.0;
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            z + first / n + second / (n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (degrees, expected) in [
            (1, 12.706),
            (10, 2.228),
            (40, 2.021),
            (60, 2.000),
            (120, 1.980),
        ] {
            assert!(
                (student_t_975(degrees) - expected).abs() < 0.001,
                "{degrees}"
            );
        }
        assert!(student_t_975(0).is_infinite());
    }

    #[test]
    fn falls_without_a_step_where_the_table_ends() {
        for degrees in 1..200 {
            let fall = student_t_975(degrees) - student_t_975(degrees + 1);
            assert!(fall >= 0.0, "{degrees}: {fall}");
        }
        assert!(student_t_975(30) - student_t_975(31) < 0.004);
    }
}
