// SPDX-License-Identifier: MIT OR Apache-2.0
//! One value of a row: how people and programs see it.

use serde_json::Value;

/// What a number counts; it decides how people see it. JSON always has the full number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Text.
    Text,
    /// A whole number or a rate: no fraction, thousands apart.
    Count,
    /// How often a second: below ten with three digits after the point, otherwise as a whole number.
    Rate,
    /// A share of 100: one digit after the point.
    Percent,
    /// A ratio: three digits after the point.
    Ratio,
    /// Nanoseconds in the cell; people see ns, us, ms or s.
    Nanoseconds,
    /// A number from 0 to 1: people see a bar of that part of [`BAR_CHARACTERS`].
    Bar,
}

/// Length of the longest bar: a table with one beside its figures fits into a terminal of usual width.
pub const BAR_CHARACTERS: usize = 32;

/// A value for people: rounded, in a unit that suits.
pub(crate) fn text(value: &Value, unit: Unit) -> String {
    let number = match value {
        Value::Null => return "-".into(),
        Value::String(text) => return text.clone(),
        Value::Bool(flag) => return if *flag { "yes" } else { "no" }.into(),
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::Array(_) | Value::Object(_) => return value.to_string(),
    };
    match unit {
        Unit::Text => number.to_string(),
        Unit::Count => thousands(number),
        Unit::Rate => rate(number),
        Unit::Percent => format!("{number:.1}"),
        Unit::Ratio => format!("{number:.3}"),
        Unit::Nanoseconds => nanoseconds(number),
        Unit::Bar => bar(number),
    }
}

/// Whole blocks, and at its end one of so many eighths; a part that is there is never without one.
fn bar(part: f64) -> String {
    const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let least = usize::from(part > 0.0);
    let eighths = (part.clamp(0.0, 1.0) * (8 * BAR_CHARACTERS) as f64).round() as usize;
    let eighths = eighths.max(least);
    let mut text = "█".repeat(eighths / 8);
    text.extend((eighths % 8).checked_sub(1).map(|rest| EIGHTHS[rest]));
    text
}

/// How often a second something happens, as tables show it ([`Unit::Rate`]).
pub fn rate(per_second: f64) -> String {
    if per_second.abs() < 9.9995 && per_second != 0.0 {
        format!("{per_second:.3}")
    } else {
        thousands(per_second)
    }
}

/// Rounded to a whole number, with a comma at every third digit.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" {
        format!("-{text}")
    } else {
        text
    }
}

/// A time in the unit that leaves one to three digits before the point.
fn nanoseconds(value: f64) -> String {
    let (unit, size) = match value.abs() {
        x if x < 1e3 => return format!("{value:.0} ns"),
        x if x < 1e6 => ("us", 1e3),
        x if x < 1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{:.1} {unit}", value / size)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_for_people_and_programs() {
        assert_eq!(text(&json!(true), Unit::Text), "yes");
        assert_eq!(text(&json!(null), Unit::Ratio), "-");
    }

    #[test]
    fn bars_are_parts_of_the_longest() {
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(f64::NAN), "");
        assert_eq!(bar(1e-9), "▏");
        assert_eq!(bar(0.5), "█".repeat(BAR_CHARACTERS / 2));
        assert_eq!(bar(1.0 / BAR_CHARACTERS as f64 * 1.5), "█▌");
        assert_eq!(bar(2.0), "█".repeat(BAR_CHARACTERS));
        assert_eq!(text(&json!(null), Unit::Bar), "-");
    }

    #[test]
    fn seldom_is_not_never() {
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(0.123_4), "0.123");
        assert_eq!(rate(9.999_6), "10");
        assert_eq!(rate(-1234.5), "-1,234");
        assert_eq!(text(&json!(0.25), Unit::Rate), "0.250");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0.0), "0");
        assert_eq!(thousands(999.6), "1,000");
        assert_eq!(thousands(-1_000_000.0), "-1,000,000");
        assert_eq!(nanoseconds(999.0), "999 ns");
        assert_eq!(nanoseconds(1_500.0), "1.5 us");
        assert_eq!(nanoseconds(2.5e9), "2.5 s");
    }
}
