// SPDX-License-Identifier: MIT OR Apache-2.0
//! The heat map as the template has it: a table for each part, what is best in each row, and every measurement behind it.

use serde::Serialize;
use unspin_papers::heat::{Entry, HeatMap, MapRow, PartMap};

/// Ratios up to which a cell has a class of colour and a sign; the last has no end.
const STEPS: [(f64, &str, &str); 8] = [
    (0.5, "h1", "▼▼"),
    (0.8, "h2", "▼"),
    (0.95, "h3", "▽"),
    (1.05, "h4", "="),
    (1.25, "h5", "△"),
    (2.0, "h6", "▲"),
    (8.0, "h7", "▲▲"),
    (f64::INFINITY, "h8", "▲▲▲"),
];

#[derive(Serialize)]
pub(super) struct Map {
    name: &'static str,
    title: &'static str,
    remedies: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    load: String,
    shape: String,
    overcommit: String,
    setting: String,
    cells: Vec<Option<Cell>>,
    best: Best,
}

#[derive(Serialize)]
struct Cell {
    /// Of the measurement behind it.
    number: usize,
    step: &'static str,
    sign: &'static str,
    text: String,
    /// Whether its interval has 1 in it, or there is none.
    unresolved: bool,
    is_best: bool,
    is_stale: bool,
}

#[derive(Serialize)]
struct Best {
    remedy: String,
    text: String,
    /// Whether it is better than the baseline at all.
    verdict: &'static str,
    /// Remedies whose interval overlaps the best one's.
    ties: String,
    number: usize,
}

/// A step of the colours, for their key.
#[derive(Serialize)]
pub(super) struct Step {
    class: &'static str,
    sign: &'static str,
    text: String,
}

/// The key of colours.
pub(super) fn steps() -> Vec<Step> {
    let lows = std::iter::once(None).chain(STEPS.iter().map(|step| Some(step.0)));
    let steps = STEPS
        .iter()
        .zip(lows)
        .map(|((high, class, sign), low)| Step {
            class,
            sign,
            text: match low {
                None => format!("below {high}"),
                Some(low) if high.is_infinite() => format!("{low} or more"),
                Some(low) => format!("{low} to {high}"),
            },
        });
    steps.collect()
}

fn step(ratio: f64) -> (&'static str, &'static str) {
    let step = STEPS.iter().find(|(high, ..)| ratio < *high);
    step.map_or(("h8", "▲▲▲"), |(_, class, sign)| (class, sign))
}

/// All maps.
pub(super) fn maps(heat: &HeatMap) -> Vec<Map> {
    let maps = heat.parts().into_iter().map(|part| Map {
        name: part.part.name(),
        title: part.part.title(),
        remedies: part.remedies.iter().map(|&name| name.to_owned()).collect(),
        rows: part
            .rows
            .iter()
            .map(|row| map_row(heat, &part, row))
            .collect(),
    });
    maps.collect()
}

fn map_row(heat: &HeatMap, part: &PartMap<'_>, row: &MapRow<'_>) -> Row {
    let cell = |(place, number): (usize, &Option<usize>)| {
        let number = (*number)?;
        let entry = &heat.entries()[number];
        let (step, sign) = step(entry.ratio);
        Some(Cell {
            number,
            step,
            sign,
            text: ratio(entry.ratio),
            unresolved: !matches!(entry.verdict(), "higher" | "lower"),
            is_best: place == row.best,
            is_stale: !entry.stale.is_empty(),
        })
    };
    Row {
        load: row.place.load.clone(),
        shape: row.place.shape.clone(),
        overcommit: overcommit(row.place.overcommit),
        setting: row.place.setting.clone(),
        cells: row.cells.iter().enumerate().map(cell).collect(),
        best: best(heat, part, row),
    }
}

fn best(heat: &HeatMap, part: &PartMap<'_>, row: &MapRow<'_>) -> Best {
    let of = |place: usize| row.cells[place].map(|number| (number, &heat.entries()[number]));
    let Some((number, entry)) = of(row.best) else {
        unreachable!("a row of the map has a cell")
    };
    let overlaps = |other: &Entry| match (entry.interval, other.interval) {
        (Some((low, _)), Some((_, high))) => low <= high,
        // Without intervals nobody can tell which is better: only the same figure is said to be as good.
        _ => other.ratio >= entry.ratio,
    };
    let ties = (0..row.cells.len())
        .filter(|place| *place != row.best)
        .filter(|place| of(*place).is_some_and(|(_, other)| overlaps(other)))
        .map(|place| part.remedies[place]);
    Best {
        remedy: entry.remedy.clone(),
        text: with_interval(entry),
        verdict: match (entry.verdict(), entry.ratio > 1.0) {
            ("higher", _) => "better than the baseline",
            ("lower", _) => "nothing is better than the baseline",
            ("not resolved", _) => "not resolved from the baseline",
            (_, true) => "better, without an interval",
            (_, false) => "nothing is better than the baseline",
        },
        ties: ties.collect::<Vec<_>>().join("; "),
        number,
    }
}

/// A measurement in the list below the maps.
#[derive(Serialize)]
pub(super) struct Measurement {
    number: usize,
    part: &'static str,
    place: String,
    remedy: String,
    text: String,
    verdict: &'static str,
    pairs: String,
    data: String,
    commit: String,
    date: String,
    is_stale: bool,
    superseded: bool,
}

/// All measurements, or those alone that a map shows.
pub(super) fn measurements(heat: &HeatMap, all: bool) -> Vec<Measurement> {
    let (shown, _) = heat.shown();
    let entries = heat.entries().iter().enumerate();
    let entries = entries.filter(|(number, _)| all || shown.contains(number));
    let measurement = |(number, entry): (usize, &Entry)| Measurement {
        number,
        part: entry.place.part.name(),
        place: place(entry),
        remedy: entry.remedy.clone(),
        text: format!("{}, to {}", with_interval(entry), entry.baseline),
        verdict: entry.verdict(),
        pairs: pairs(entry),
        data: format!("{}:{}", entry.origin.benchmark, entry.origin.line),
        commit: commit(entry),
        date: entry.origin.date.clone(),
        is_stale: !entry.stale.is_empty(),
        superseded: !shown.contains(&number),
    };
    entries.map(measurement).collect()
}

fn place(entry: &Entry) -> String {
    let place = &entry.place;
    let over = overcommit(place.overcommit);
    format!(
        "{} {}, overcommit {over}, {}",
        place.load, place.shape, place.setting
    )
}

fn pairs(entry: &Entry) -> String {
    entry
        .pairs
        .map_or_else(|| "not noted".to_owned(), |pairs| pairs.to_string())
}

fn commit(entry: &Entry) -> String {
    match entry.origin.commit.as_str() {
        "" => "commit not noted".to_owned(),
        commit => commit.to_owned(),
    }
}

fn with_interval(entry: &Entry) -> String {
    match entry.interval {
        None => ratio(entry.ratio),
        Some((low, high)) => format!(
            "{} ({} to {}, {})",
            ratio(entry.ratio),
            ratio(low),
            ratio(high),
            entry.interval_is
        ),
    }
}

fn ratio(value: f64) -> String {
    match value.abs() {
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn overcommit(value: Option<f64>) -> String {
    value.map_or_else(|| "not known".to_owned(), |value| format!("{value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_a_sign_each_and_meet() {
        assert_eq!(step(0.0), ("h1", "▼▼"));
        assert_eq!(step(0.95), ("h4", "="));
        assert_eq!(step(1.0499), ("h4", "="));
        assert_eq!(step(1.05), ("h5", "△"));
        assert_eq!(step(1e9), ("h8", "▲▲▲"));
        assert_eq!(step(f64::INFINITY), ("h8", "▲▲▲"));
        let texts: Vec<String> = steps().into_iter().map(|step| step.text).collect();
        assert_eq!(
            (texts[0].as_str(), texts[7].as_str()),
            ("below 0.5", "8 or more")
        );
        assert_eq!(texts[3], "0.95 to 1.05");
    }

    #[test]
    fn ratios_have_three_digits() {
        assert_eq!(
            (ratio(0.956), ratio(20.43)),
            ("0.96".to_owned(), "20.4".to_owned())
        );
        assert_eq!(
            (overcommit(Some(4.0)), overcommit(None)),
            ("4".to_owned(), "not known".to_owned())
        );
    }
}
