// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers with units, as text: `"300 loops"`, `"1.5ms"`. Exact: what is no whole nanosecond is refused.

/// What a number of a distribution counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkUnit {
    /// Iterations of the two-instruction work loop: the same on every machine.
    Loops,
    /// Nanoseconds of CPU time: turned into loops by a measured rate.
    Nanoseconds,
}

const TIME_UNITS: [(&str, u64); 4] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// What is wrong with a quantity; the caller adds where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub String);

/// Reads a duration such as `"250ms"`, in nanoseconds. The error says what is wrong with the text.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    duration(text).map_err(|fault| fault.0)
}

/// Prints nanoseconds in the largest unit that holds them exactly; [`parse_duration`] reads it back.
pub fn format_duration(ns: u64) -> String {
    let (unit, size) = TIME_UNITS
        .iter()
        .rev()
        .find(|(_, size)| ns % size == 0 && (ns > 0 || *size > 1_000_000))
        .unwrap_or(&TIME_UNITS[0]);
    format!("{}{unit}", ns / size)
}

/// A duration in nanoseconds.
pub(crate) fn duration(text: &str) -> Result<u64, Fault> {
    let (number, unit) = split(text)?;
    let size = TIME_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, size)| *size)
        .ok_or_else(|| match unit {
            "" => Fault(format!("`{text}` has no unit")),
            "loop" | "loops" => Fault(format!("`{text}` is work, not a time")),
            _ => Fault(format!("`{unit}` is not a unit of time")),
        })?;
    scale(text, number, size)
}

/// An amount of work: loops or CPU time.
pub(crate) fn work(text: &str) -> Result<(WorkUnit, u64), Fault> {
    let (number, unit) = split(text)?;
    if matches!(unit, "loop" | "loops") {
        return Ok((WorkUnit::Loops, scale(text, number, 1)?));
    }
    if unit.is_empty() {
        return Err(Fault(format!("`{text}` has no unit")));
    }
    if !TIME_UNITS.iter().any(|(name, _)| *name == unit) {
        return Err(Fault(format!("`{unit}` is not a unit of work")));
    }
    Ok((WorkUnit::Nanoseconds, duration(text)?))
}

/// Prints an amount of work; [`work`] reads it back.
pub(crate) fn format_work(unit: WorkUnit, value: u64) -> String {
    match unit {
        WorkUnit::Loops => format!("{value} loops"),
        WorkUnit::Nanoseconds => format_duration(value),
    }
}

/// Number and unit of `text`, at most one blank between them.
fn split(text: &str) -> Result<(&str, &str), Fault> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    if number.is_empty() {
        return Err(Fault(format!("`{text}` does not begin with a number")));
    }
    Ok((number, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// `number` (digits, at most one point) times `size`, exactly.
fn scale(text: &str, number: &str, size: u64) -> Result<u64, Fault> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(Fault(format!("`{number}` is not a number")));
    }
    let too_large = || Fault(format!("`{text}` is too large"));
    let whole: u64 = whole.parse().map_err(|_| too_large())?;
    let mut total = whole.checked_mul(size).ok_or_else(too_large)?;
    let mut place = size;
    for digit in fraction.bytes().map(|b| u64::from(b - b'0')) {
        if digit != 0 && place % 10 != 0 {
            return Err(Fault(format!("`{text}` is finer than what can be counted")));
        }
        place /= 10;
        // digit * place < size, so only the addition can overflow.
        total = total.checked_add(digit * place).ok_or_else(too_large)?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations_exactly() {
        for (text, ns) in [
            ("1s", 1_000_000_000),
            ("1.5ms", 1_500_000),
            ("6us", 6_000),
            ("0.001 us", 1),
            ("0s", 0),
            ("18446744073709551615ns", u64::MAX),
        ] {
            assert_eq!(duration(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for (text, reason) in [
            ("1", "has no unit"),
            ("1 m", "is not a unit of time"),
            ("300 loops", "is work"),
            ("0.5ns", "finer"),
            ("1.2.3s", "is not a number"),
            (".5s", "is not a number"),
            ("1.s", "is not a number"),
            ("-1s", "does not begin"),
            ("", "does not begin"),
            ("1  s", "is not a unit"),
            ("18446744073709551616ns", "too large"),
            ("18446744074s", "too large"),
            ("18446744073.8s", "too large"),
        ] {
            let fault = duration(text).expect_err(text);
            assert!(fault.0.contains(reason), "{text}: {}", fault.0);
        }
    }

    #[test]
    fn reads_work() {
        assert_eq!(work("300 loops"), Ok((WorkUnit::Loops, 300)));
        assert_eq!(work("1 loop"), Ok((WorkUnit::Loops, 1)));
        assert_eq!(work("6us"), Ok((WorkUnit::Nanoseconds, 6_000)));
        assert!(work("300").is_err());
        assert!(work("300 hoops").is_err());
        assert!(work("1.5 loops").is_err());
    }

    #[test]
    fn prints_what_it_reads() {
        for ns in [0, 1, 999, 1_000, 1_500_000, 2_000_000_000, u64::MAX] {
            assert_eq!(parse_duration(&format_duration(ns)), Ok(ns));
        }
        assert_eq!(format_duration(0), "0s");
        assert_eq!(format_duration(1_500_000), "1500us");
    }
}
