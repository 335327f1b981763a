// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exponential times of which only bounds are known.

/// Mean of an exponential time of mean `mean` (above 0) that lies between the two, `least <= most`.
pub fn mean_between(least: f64, most: f64, mean: f64) -> f64 {
    let width = (most - least) / mean;
    if width < 1e-6 {
        return (least + most) / 2.0;
    }
    least + mean - (most - least) / width.exp_m1()
}

/// The chance that such a time is longer than `so_far`, 0 to 1.
pub fn chance_beyond(least: f64, most: f64, mean: f64, so_far: f64) -> f64 {
    if so_far >= most || mean <= 0.0 {
        return 0.0;
    }
    if so_far <= least {
        return 1.0;
    }
    let until_most = |from: f64| -(-(most - from) / mean).exp_m1();
    until_most(so_far) / until_most(least) * (-(so_far - least) / mean).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_bounds() {
        // Far apart, the bounds do not matter; close together, the time is their middle.
        assert!((mean_between(0.0, 1e9, 40.0) - 40.0).abs() < 1e-6);
        assert!((mean_between(10.0, 10.001, 40.0) - 10.0005).abs() < 1e-6);
        // By hand: the mean of e^-x on [0, 1] is (1 - 2/e) / (1 - 1/e).
        let by_hand = (1.0 - 2.0 / std::f64::consts::E) / (1.0 - 1.0 / std::f64::consts::E);
        assert!((mean_between(0.0, 1.0, 1.0) - by_hand).abs() < 1e-12);
    }

    #[test]
    fn chances_fall_from_one_to_nothing() {
        assert_eq!(chance_beyond(10.0, 50.0, 20.0, 10.0), 1.0);
        assert_eq!(chance_beyond(10.0, 50.0, 20.0, 50.0), 0.0);
        let chances: Vec<f64> = (10..=50)
            .map(|so_far| chance_beyond(10.0, 50.0, 20.0, f64::from(so_far)))
            .collect();
        assert!(
            chances.windows(2).all(|pair| pair[0] > pair[1]),
            "{chances:?}"
        );
        // Without an upper bound it is e^(-x / mean).
        let free = chance_beyond(0.0, 1e12, 20.0, 20.0);
        assert!((free - (-1.0f64).exp()).abs() < 1e-9);
        assert_eq!(chance_beyond(0.0, 5.0, 0.0, 1.0), 0.0);
    }
}
