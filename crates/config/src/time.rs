// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times with their unit, as the command line and the configuration file have them.

use std::time::Duration;

use unspin_scenario::parse_duration;

/// A time limit: above 0.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_limit(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        0 => Err("a limit of 0 lets nothing run".into()),
        ns => Ok(Duration::from_nanos(ns)),
    }
}

/// A time, 0 allowed.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_above_0() {
        assert_eq!(parse_limit("1.5s"), Ok(Duration::from_millis(1_500)));
        assert!(parse_limit("0s").is_err() && parse_limit("90").is_err());
        assert_eq!(parse_time("0s"), Ok(Duration::ZERO));
    }
}
