// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `--set` of `unspin lab sweep` takes: several values of one key.

/// Most values of one key.
const VALUES_MAX: usize = 100_000;

/// A key with several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// As `--set` takes it.
    pub key: String,
    /// At least one, none of them twice.
    pub values: Vec<String>,
}

impl Axis {
    /// These values of a key, each as `--set` takes it.
    ///
    /// # Errors
    /// No value, too many, or one twice.
    pub fn new(key: &str, values: Vec<String>) -> Result<Axis, String> {
        if values.is_empty() {
            return Err("no value".to_owned());
        }
        if values.len() > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values"));
        }
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = values.iter().find(|value| !seen.insert(value.as_str())) {
            return Err(format!("the value {twice} stands there twice"));
        }
        Ok(Axis {
            key: key.trim().to_owned(),
            values,
        })
    }
}

/// `key=value`, `key=x,y,z`, `key=a..b`, `key=a..b..step` or `key=a..b..*factor`; both ends belong to it.
///
/// # Errors
/// What is none of these, and those of [`Axis::new`].
pub fn parse_axis(given: &str) -> Result<Axis, String> {
    let (key, values) = given
        .split_once('=')
        .ok_or("write key=value, key=a..b or key=x,y,z")?;
    let mut all = Vec::new();
    for part in split(values) {
        match range(part)? {
            Some(values) => all.extend(values),
            None => all.push(part.to_owned()),
        }
        if all.len() > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values"));
        }
    }
    Axis::new(key, all)
}

/// At the commas that are in no quotes, brackets or braces.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut quoted) = (Vec::new(), 0, 0i32, false);
    for (place, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth <= 0 => {
                parts.push(text[begin..place].trim());
                begin = place + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

/// The values of `a..b..step`; `None`: it is no range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let parts: Vec<&str> = text.split("..").map(str::trim).collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Ok(None),
    };
    let (Some((first, unit)), Some((last, other))) = (number(first), number(last)) else {
        return Ok(None);
    };
    let (factor, step) = match step.strip_prefix('*') {
        Some(step) => (true, step),
        None => (false, step),
    };
    let bad = "a range is a..b, a..b..step or a..b..*factor, whole numbers in one unit, with a step that leads from a to b";
    let (step, step_unit) = number(step).ok_or(bad)?;
    let same = unit == other && (step_unit.is_empty() || (step_unit == unit && !factor));
    let leads = step >= 1 && first <= last && (!factor || (step >= 2 && first >= 1));
    if !same || !leads {
        return Err(bad.to_owned());
    }
    let next = |value: &u64| match factor {
        true => value.checked_mul(step),
        false => value.checked_add(step),
    };
    let values = std::iter::successors(Some(first), next).take_while(|value| *value <= last);
    let values: Vec<String> = values
        .take(VALUES_MAX + 1)
        .map(|value| format!("{value}{unit}"))
        .collect();
    Ok(Some(values))
}

/// A whole number and what stands behind it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let known = ["", "ns", "us", "ms", "s", "loops", " loops"].contains(&unit);
    Some((digits.parse().ok().filter(|_| known)?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(given: &str) -> Vec<String> {
        parse_axis(given)
            .unwrap_or_else(|error| panic!("{given}: {error}"))
            .values
    }

    #[test]
    fn values_of_a_key() {
        assert_eq!(values("vm.vcpus=2..5"), ["2", "3", "4", "5"]);
        assert_eq!(values("vm.hold=2us..9us..3us"), ["2us", "5us", "8us"]);
        assert_eq!(values("vm.hold=2us..9us..3"), ["2us", "5us", "8us"]);
        assert_eq!(
            values("host.ple_window=10..1000..*10"),
            ["10", "100", "1000"]
        );
        assert_eq!(
            values("vm.lock=ticket,test_and_set"),
            ["ticket", "test_and_set"]
        );
        assert_eq!(values("vm.vcpus=1,4..6,9"), ["1", "4", "5", "6", "9"]);
        assert_eq!(
            values("lab.pins=[\"0,2\"],[\"1\"]"),
            ["[\"0,2\"]", "[\"1\"]"]
        );
        assert_eq!(values("vm.hold={ uniform = [\"1us\", \"2us\"] }").len(), 1);
        assert_eq!(values("seed=7"), ["7"]);
    }

    #[test]
    fn what_is_no_range() {
        for given in [
            "a",
            "a=5..1",
            "a=1..5..0",
            "a=0..8..*2",
            "a=1..8..*1",
            "a=1us..5ms",
            "a=1,1",
            "a=1..999999999",
        ] {
            assert!(parse_axis(given).is_err(), "{given}");
        }
        assert_eq!(values("a=x..y"), ["x..y"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z.=,0-9us*\\[\\]{}\" ]{0,40}") {
            if let Ok(axis) = parse_axis(&text) {
                prop_assert!(!axis.values.is_empty());
            }
        }
    }
}
