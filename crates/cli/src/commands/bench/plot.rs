// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--plot FILE` of `unspin bench threads` and `bench vm`: a panel for each hold, think and number of neighbours; operations per
//! second over the number of threads or VMs, both by powers; our locks drawn through, baselines dashed.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::Context;
use unspin_lockbench::{Cell, ThreadsReport};
use unspin_scenario::{Distribution, Shape, WorkUnit};

use crate::terminal::failure::Failure;

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 240.0;
const MARGIN: f64 = 50.0;
const PANELS_IN_A_ROW: usize = 3;
/// Disclosures apart by people who see few colours (Okabe and Ito).
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999",
];

/// One lock at one point.
pub struct Mark<'a> {
    /// Title of the panel it belongs to.
    pub panel: String,
    /// Somebody else's lock: dashed.
    pub is_baseline: bool,
    /// Its name.
    pub lock: &'a str,
    /// Threads or VMs.
    pub x: u32,
    /// Median operations per second; `None`: not drawn.
    pub rate: Option<f64>,
}

/// What threads measured.
pub fn marks(report: &ThreadsReport) -> Vec<Mark<'_>> {
    let cells = report.cells.iter();
    cells
        .map(|cell| Mark {
            panel: title(cell),
            is_baseline: cell.is_baseline,
            lock: &cell.lock,
            x: cell.threads,
            rate: cell.figures().median_rate,
        })
        .collect()
}

/// Draws the medians; `x_words` say what they stand over.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, marks: &[Mark<'_>], x_words: &str) -> Result<(), Failure> {
    fs::write(path, draw(marks, x_words))
        .with_context(|| format!("{}: the plot cannot be written", path.display()))?;
    Ok(())
}

/// Threads and median rate of each lock, in order of threads.
type Lines<'a> = BTreeMap<(bool, &'a str), Vec<(u32, f64)>>;

fn draw(marks: &[Mark<'_>], x_words: &str) -> String {
    let mut panels: Vec<(String, Lines<'_>)> = Vec::new();
    let mut names: Vec<(bool, &str)> = Vec::new();
    for mark in marks {
        let place = panels.iter().position(|(known, _)| *known == mark.panel);
        let place = place.unwrap_or_else(|| {
            panels.push((mark.panel.clone(), Lines::new()));
            panels.len() - 1
        });
        let name = (mark.is_baseline, mark.lock);
        if !names.contains(&name) {
            names.push(name);
        }
        if let Some(rate) = mark.rate {
            let line = panels[place].1.entry(name).or_default();
            line.push((mark.x, rate));
            line.sort_by_key(|(threads, _)| *threads);
        }
    }
    let rows = panels.len().div_ceil(PANELS_IN_A_ROW).max(1);
    let columns = panels.len().clamp(1, PANELS_IN_A_ROW);
    let (width, bottom) = (columns as f64 * WIDTH, rows as f64 * HEIGHT);
    let height = bottom + 30.0 + 18.0 * names.len().div_ceil(columns * 2) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (number, (title, lines)) in panels.iter().enumerate() {
        let x = (number % PANELS_IN_A_ROW) as f64 * WIDTH;
        let y = (number / PANELS_IN_A_ROW) as f64 * HEIGHT;
        let _ = writeln!(svg, r#"<g transform="translate({x:.0} {y:.0})">"#);
        panel(&mut svg, title, lines, &names);
        svg += "</g>\n";
    }
    legend(&mut svg, &names, bottom, x_words, columns * 2);
    svg + "</svg>\n"
}

fn title(cell: &Cell) -> String {
    let beside = match cell.neighbours {
        0 => String::new(),
        count => format!(", {count} beside"),
    };
    let (hold, think) = (format_work(&cell.hold), format_work(&cell.think));
    format!("hold {hold}, think {think}{beside}")
}

fn style(names: &[(bool, &str)], name: (bool, &str)) -> (&'static str, &'static str) {
    let place = names.iter().position(|known| *known == name).unwrap_or(0);
    let dashes = ["", "6 3", "2 2"][usize::from(name.0) * (1 + place / COLOURS.len() % 2)];
    (COLOURS[place % COLOURS.len()], dashes)
}

/// A value's place between two others, by powers: 0 to 1.
fn share(value: f64, low: f64, high: f64) -> f64 {
    if high <= low {
        return 0.5;
    }
    (value.max(low).ln() - low.ln()) / (high.ln() - low.ln())
}

fn panel(svg: &mut String, title: &str, lines: &Lines<'_>, names: &[(bool, &str)]) {
    let points = || lines.values().flatten();
    let most = points().map(|(_, rate)| *rate).fold(1.0, f64::max);
    let least = points()
        .map(|(_, rate)| *rate)
        .fold(most, f64::min)
        .max(1.0);
    let (low, high) = (
        10f64.powf(least.log10().floor()),
        10f64.powf(most.log10().ceil()),
    );
    let threads = || points().map(|(threads, _)| f64::from(*threads));
    let (first, last) = (
        threads().fold(f64::MAX, f64::min),
        threads().fold(1.0, f64::max),
    );
    let x = |threads: f64| MARGIN + (WIDTH - MARGIN - 15.0) * share(threads, first, last);
    let y = |rate: f64| HEIGHT - 35.0 - (HEIGHT - 65.0) * share(rate, low, high);
    let _ = writeln!(
        svg,
        r#"<text x="{MARGIN}" y="18" font-weight="bold">{title}</text>"#
    );
    let mut decade = low;
    while decade <= high * 1.001 {
        let (at, right) = (y(decade), WIDTH - 15.0);
        let _ = writeln!(
            svg,
            r##"<line x1="{MARGIN}" x2="{right:.0}" y1="{at:.1}" y2="{at:.1}" stroke="#dddddd"/><text x="{:.0}" y="{:.1}" text-anchor="end">1e{:.0}</text>"##,
            MARGIN - 4.0,
            at + 4.0,
            decade.log10()
        );
        decade *= 10.0;
    }
    let mut ticks: Vec<u32> = points().map(|(threads, _)| *threads).collect();
    ticks.sort_unstable();
    ticks.dedup();
    for tick in ticks {
        let (at, low) = (x(f64::from(tick)), HEIGHT - 18.0);
        let _ = writeln!(
            svg,
            r#"<text x="{at:.1}" y="{low:.0}" text-anchor="middle">{tick}</text>"#
        );
    }
    for (name, line) in lines {
        let (colour, dashes) = style(names, *name);
        let path: Vec<String> = line
            .iter()
            .map(|(threads, rate)| format!("{:.1},{:.1}", x(f64::from(*threads)), y(*rate)))
            .collect();
        let _ = writeln!(
            svg,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dashes}"/>"#,
            path.join(" ")
        );
    }
}

fn legend(svg: &mut String, names: &[(bool, &str)], top: f64, x_words: &str, columns: usize) {
    let _ = writeln!(
        svg,
        r#"<text x="{MARGIN}" y="{:.0}">operations per second (median) over {x_words}; baselines dashed</text>"#,
        top + 10.0
    );
    for (number, name) in names.iter().enumerate() {
        let (colour, dashes) = style(names, *name);
        let x = MARGIN + (number % columns) as f64 * WIDTH / 2.0;
        let y = top + 28.0 + (number / columns) as f64 * 18.0;
        let _ = writeln!(
            svg,
            r#"<line x1="{x:.0}" x2="{:.0}" y1="{y:.0}" y2="{y:.0}" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/><text x="{:.0}" y="{:.0}">{}</text>"#,
            x + 24.0,
            x + 28.0,
            y + 4.0,
            name.1
        );
    }
}

/// A distribution in a cell: its constant, or its shape and numbers.
pub fn format_work(work: &Distribution) -> String {
    let value = |value: u64| match work.unit {
        WorkUnit::Nanoseconds => unspin_scenario::format_duration(value),
        WorkUnit::Loops => format!("{value} loops"),
    };
    match work.shape {
        Shape::Constant(constant) => value(constant),
        Shape::Uniform { low, high } => format!("{} to {}", value(low), value(high)),
        Shape::Exponential { mean } => format!("exponential {}", value(mean)),
    }
}
