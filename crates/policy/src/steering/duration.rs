// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times as policies take them: a number with a unit, `500us` or `1.5ms`.

use std::ops::RangeInclusive;

const UNITS: [(&str, u32); 3] = [("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// `value` in ns, if it is within `allowed_ns`; `word` is what the user wrote, for the error.
pub(crate) fn parse(
    word: &str,
    value: &str,
    allowed_ns: RangeInclusive<u32>,
) -> Result<u32, String> {
    let (low, high) = (format(*allowed_ns.start()), format(*allowed_ns.end()));
    nanoseconds(value)
        .filter(|ns| allowed_ns.contains(ns))
        .ok_or_else(|| format!("`{word}`: a time from {low} to {high}, as in 500us or 1.5ms"))
}

/// `None`: no number of 0 or more with a unit, none that fits, or a fraction of a nanosecond.
fn nanoseconds(text: &str) -> Option<u32> {
    const PLACES: usize = 6;
    let (number, unit_ns) = UNITS
        .iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, u64::from(*ns))))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > PLACES {
        return None;
    }
    // Millionths of the unit, of which 10^6 are one.
    let millionths: u64 = format!("{whole}{part:0<PLACES$}").parse().ok()?;
    let ns = millionths.checked_mul(unit_ns)?;
    (ns % 1_000_000 == 0)
        .then(|| u32::try_from(ns / 1_000_000).ok())
        .flatten()
}

/// In the largest unit that leaves no fraction.
pub(crate) fn format(ns: u32) -> String {
    let (unit, unit_ns) = UNITS
        .into_iter()
        .find(|(_, unit_ns)| ns % unit_ns == 0)
        .expect("1 ns divides all");
    format!("{}{unit}", ns / unit_ns)
}
