// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures in cells of `benchmarks/`: numbers, and the texts of a notebook's tables, as in "6,814 (4,577 to 9,344)",
//! "32.6 / 0.5 / 0.0 / 66.9", "24.7, 0.3, 74.9 %", "7,174", "89 ms (88 to 89)", "15.0 to 36.5" and "6,651 of 6,805".

use anyhow::{Context, bail};
use serde_json::Value;

/// A figure and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    /// The figure; of a range without one, its middle; of "X of Y", X in percent of Y.
    pub value: f64,
    /// From and to, where the cell says so.
    pub interval: Option<(f64, f64)>,
}

/// Reads one part of a cell, from 0; times come as nanoseconds.
pub(crate) fn read(cell: &Value, part: usize) -> anyhow::Result<Cell> {
    let text = match cell {
        Value::Number(number) if part == 0 => {
            let value = number.as_f64().context("a number")?;
            return Ok(Cell {
                value,
                interval: None,
            });
        }
        Value::String(text) => text,
        other => bail!("{other} has no part {part}"),
    };
    let parts = parts(text);
    let Some(part) = parts.get(part) else {
        bail!("{text:?} has {} parts, counted from 0", parts.len())
    };
    read_part(part).with_context(|| format!("{text:?}"))
}

/// Parts stand apart by "; ", else by " / ", else by ", " that is outside of brackets.
fn parts(text: &str) -> Vec<&str> {
    let separator = ["; ", " / "]
        .into_iter()
        .find(|separator| text.contains(separator))
        .unwrap_or(", ");
    text.split(separator).collect()
}

fn read_part(part: &str) -> anyhow::Result<Cell> {
    let (main, bracket) = match part.split_once('(') {
        Some((main, rest)) => (main, Some(rest.trim_end().trim_end_matches(')'))),
        None => (part, None),
    };
    let main = main.trim();
    let unit = unit(main);
    if let Some((from, to)) = main.split_once(" to ") {
        let (from, to) = (number(from)? * unit, number(to)? * unit);
        return Ok(Cell {
            value: (from + to) / 2.0,
            interval: Some((from, to)),
        });
    }
    if let Some((some, all)) = main.split_once(" of ") {
        let (some, all) = (number(some)?, number(all)?);
        if all <= 0.0 {
            bail!("a share of nothing");
        }
        return Ok(Cell {
            value: 100.0 * some / all,
            interval: None,
        });
    }
    // "x (y)": a remark in brackets is no interval.
    let interval = bracket
        .and_then(|bracket| bracket.split_once(" to "))
        .map(|(from, to)| anyhow::Ok((number(from)? * unit, number(to)? * unit)))
        .transpose()?;
    Ok(Cell {
        value: number(main)? * unit,
        interval,
    })
}

/// What a number with such an end is multiplied with: nanoseconds of times.
fn unit(text: &str) -> f64 {
    match text.split_whitespace().last() {
        Some("us") => 1e3,
        Some("ms") => 1e6,
        Some("s") => 1e9,
        _ => 1.0,
    }
}

/// The number at the beginning, thousands apart by commas.
fn number(text: &str) -> anyhow::Result<f64> {
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+');
    let text = text.trim();
    let end = text.find(|c| !digits(c)).unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(|c| *c != ',').collect();
    digits
        .parse()
        .with_context(|| format!("no number in {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str, part: usize) -> (f64, Option<(f64, f64)>) {
        let cell = read(&Value::from(text), part).expect("a cell");
        (cell.value, cell.interval)
    }

    #[test]
    fn the_notebook_s_cells_are_read() {
        assert_eq!(
            of("6,814 (4,577 to 9,344)", 0),
            (6814.0, Some((4577.0, 9344.0)))
        );
        assert_eq!(of("2.10 (0.99 to 3.18)", 0), (2.1, Some((0.99, 3.18))));
        assert_eq!(of("32.6 / 0.5 / 0.0 / 66.9", 3), (66.9, None));
        assert_eq!(of("24.7, 0.3, 74.9 %", 2), (74.9, None));
        assert_eq!(of("3.8 %; 9.1 %", 1), (9.1, None));
        assert_eq!(of("89 ms (88 to 89)", 0), (89e6, Some((88e6, 89e6))));
        assert_eq!(of("1.2 s (1.1 to 1.3)", 0), (1.2e9, Some((1.1e9, 1.3e9))));
        assert_eq!(of("15.0 to 36.5", 0), (25.75, Some((15.0, 36.5))));
        assert_eq!(of("53,372 (2.09)", 0), (53372.0, None));
        assert_eq!(of("5 of 20", 0), (25.0, None));
        assert_eq!(read(&Value::from(2.5), 0).unwrap().value, 2.5);
    }

    #[test]
    fn what_has_no_figure_is_refused() {
        for (cell, part) in [
            (Value::from("-"), 0),
            (Value::from("not resolved"), 0),
            (Value::from("1 / 2"), 2),
            (Value::from(1), 1),
            (Value::from("1 of 0"), 0),
            (Value::Null, 0),
            (Value::from("1 (a to b)"), 0),
        ] {
            assert!(read(&cell, part).is_err(), "{cell}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in 0u32..10_000_000, low in 0u32..1000, high in 0u32..1000) {
            let text = format!("{value} ({low} to {high})");
            let read = (f64::from(value), Some((f64::from(low), f64::from(high))));
            prop_assert_eq!(of(&text, 0), read);
        }
    }
}
