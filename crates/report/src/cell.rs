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
    /// A share of 100: one digit after the point.
    Percent,
    /// A ratio: three digits after the point.
    Ratio,
    /// Nanoseconds in the cell; people see ns, us, ms or s.
    Nanoseconds,
}

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
        Unit::Percent => format!("{number:.1}"),
        Unit::Ratio => format!("{number:.3}"),
        Unit::Nanoseconds => nanoseconds(number),
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
    fn numbers_for_people() {
        assert_eq!(thousands(0.0), "0");
        assert_eq!(thousands(999.6), "1,000");
        assert_eq!(thousands(-1_000_000.0), "-1,000,000");
        assert_eq!(nanoseconds(999.0), "999 ns");
        assert_eq!(nanoseconds(1_500.0), "1.5 us");
        assert_eq!(nanoseconds(2.5e9), "2.5 s");
    }
}
