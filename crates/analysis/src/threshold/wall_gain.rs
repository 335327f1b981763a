// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much sooner the work would be done without spinning (Friebel 2008, "Efficiency"; ruling 5).

/// Share of the wall time that would be won: guest / (guest + others) x spin share. `guest` and `others` are CPU times in
/// any one unit, `others` of everything that competed with the guest; `spin_share` is the spinning's share of the guest's
/// time, 0 to 1. `None` when nothing ran at all, or a time is negative.
pub fn predicted_wall_gain(guest: f64, others: f64, spin_share: f64) -> Option<f64> {
    let known = guest >= 0.0 && others >= 0.0 && (0.0..=1.0).contains(&spin_share);
    (known && guest + others > 0.0).then(|| guest / (guest + others) * spin_share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tolerance of printed percentages (ruling 5).
    const POINT: f64 = 0.1;

    fn percent(part: f64, whole: f64) -> f64 {
        100.0 * part / whole
    }

    /// Claims F03 to F05: 117/(117+126) x 7.6 % = 3.7 %, measured 3.9 %, and 34.8 s to 33.5 s, which is 3.7 %.
    #[test]
    fn friebels_kernbench() {
        let predicted = 100.0 * predicted_wall_gain(117.0, 126.0, 0.076).expect("known");
        assert!((predicted - 3.7).abs() < POINT / 2.0, "{predicted}");
        let from_table = predicted_wall_gain(117.3, 126.0, 9.0 / 117.3).expect("known");
        let measured = percent(34.8 - 33.5, 34.8);
        for gain in [predicted, 100.0 * from_table, measured, 3.9] {
            assert!((3.4..=4.0).contains(&gain), "{gain}");
        }
        assert!((measured - 3.7).abs() < POINT, "{measured}");
    }

    /// Claims F01 to F07: the table guest time, spinning, %.
    #[test]
    fn friebels_table() {
        for (guest, spinning, printed) in [
            (109.0, 0.2, 0.2),
            (117.3, 9.0, 7.6),
            (108.4, 0.0, 0.0),
            (22_434.2, 22_270.4, 99.3),
            (123.6, 6.6, 5.4),
        ] {
            let share = percent(spinning, guest);
            assert!((share - printed).abs() < POINT, "{share} for {printed}");
        }
        // Spinning explains all of what the guest's time grew by.
        assert!((percent(117.3 - 109.0, 109.0) - 7.6).abs() < POINT);
        assert!((percent(117.3 - 108.4, 117.3) - 7.6).abs() < POINT);
        // Claim F06 and ruling 6: 7.94 CPUs of guest time.
        assert!((22_434.2f64 / 2_825.1 - 7.94).abs() < 0.005);
    }

    #[test]
    fn nothing_is_predicted_from_nothing() {
        assert_eq!(predicted_wall_gain(0.0, 0.0, 0.5), None);
        assert_eq!(predicted_wall_gain(1.0, 1.0, 1.5), None);
        assert_eq!(predicted_wall_gain(-1.0, 1.0, 0.5), None);
        assert_eq!(predicted_wall_gain(1.0, 0.0, 0.5), Some(0.5));
    }
}
