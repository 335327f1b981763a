// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates of locks as a picture (SVG): a panel for each hold, think and number of neighbours; operations per second over the
//! number of threads or VMs, both by powers; our locks drawn through, baselines dashed.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context;
use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use crate::Error;

const WIDTH: u32 = 340;
const HEIGHT: u32 = 240;
const MARGIN: u32 = 50;
const PANELS_IN_A_ROW: usize = 3;
const FONT: (&str, u32) = ("sans-serif", 11);
/// Told apart by people who see few colours (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0x99, 0x99, 0x99),
];

/// One lock at one point.
pub struct Mark<'a> {
    /// Title of the panel it belongs to.
    pub panel: String,
    /// Somebody else's lock: dashed.
    pub is_baseline: bool,
    /// Its name.
    pub lock: &'a str,
    /// Threads or VMs, 1 or more.
    pub x: u32,
    /// Median operations per second; `None`: not drawn.
    pub rate: Option<f64>,
}

/// Whether it is a baseline, and its name.
type Name<'a> = (bool, &'a str);
/// Threads or VMs and median rate of each lock, in order of threads.
type Lines<'a> = BTreeMap<Name<'a>, Vec<(f64, f64)>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the medians; `x_words` say what they stand over.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, marks: &[Mark<'_>], x_words: &str) -> Result<(), Error> {
    let failed = || format!("{}: the plot cannot be written", path.display());
    let mut svg = String::new();
    draw(&mut svg, marks, x_words)
        .map_err(|error| anyhow::anyhow!("{error}"))
        .with_context(failed)?;
    fs::write(path, svg).with_context(failed)?;
    Ok(())
}

fn draw(svg: &mut String, marks: &[Mark<'_>], x_words: &str) -> Result<(), Failed> {
    let mut panels: Vec<(&str, Lines<'_>)> = Vec::new();
    let mut names: Vec<Name<'_>> = Vec::new();
    for mark in marks {
        let place = panels.iter().position(|(known, _)| *known == mark.panel);
        let place = place.unwrap_or_else(|| {
            panels.push((&mark.panel, Lines::new()));
            panels.len() - 1
        });
        let name = (mark.is_baseline, mark.lock);
        if !names.contains(&name) {
            names.push(name);
        }
        if let Some(rate) = mark.rate {
            let line = panels[place].1.entry(name).or_default();
            line.push((f64::from(mark.x), rate.max(1.0)));
            line.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
    }
    let rows = panels.len().div_ceil(PANELS_IN_A_ROW).max(1);
    let columns = panels.len().clamp(1, PANELS_IN_A_ROW);
    let (width, bottom) = (columns as u32 * WIDTH, rows as u32 * HEIGHT);
    let height = bottom + 30 + 18 * names.len().div_ceil(columns * 2) as u32;
    let root = SVGBackend::with_string(svg, (width, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(bottom);
    let areas = above.split_evenly((rows, columns));
    for ((title, lines), area) in panels.iter().zip(&areas) {
        panel(area, title, lines, &names)?;
    }
    legend(&below, &names, x_words, columns * 2)?;
    root.present()?;
    Ok(())
}

type Failed = DrawingAreaErrorKind<std::io::Error>;

/// A colour and the length of dashes, 0: drawn through.
fn style(names: &[Name<'_>], name: Name<'_>) -> (ShapeStyle, u32) {
    let place = names.iter().position(|known| *known == name).unwrap_or(0);
    let dash = [0, 6, 2][usize::from(name.0) * (1 + place / COLOURS.len() % 2)];
    let colour = COLOURS[place % COLOURS.len()];
    (colour.stroke_width(2), dash)
}

/// From the first to the last of them, some room around a single one: an axis by powers has to have a length.
fn range(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let least = values.clone().fold(f64::MAX, f64::min);
    let most = values.fold(1.0, f64::max);
    match least < most {
        true => least..most,
        false => most / 2.0..most * 2.0,
    }
}

fn panel(
    area: &Area<'_>,
    title: &str,
    lines: &Lines<'_>,
    names: &[Name<'_>],
) -> Result<(), Failed> {
    let points = lines.values().flatten();
    let x = range(points.clone().map(|(x, _)| *x));
    let rates = range(points.clone().map(|(_, rate)| *rate));
    let decades = |rate: f64, round: fn(f64) -> f64| 10f64.powf(round(rate.log10()));
    let y = decades(rates.start, f64::floor)..decades(rates.end, f64::ceil);
    let mut ticks: Vec<f64> = points.map(|(x, _)| *x).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let mut chart = ChartBuilder::on(area)
        .caption(title, FONT)
        .margin_right(15)
        .x_label_area_size(25)
        .y_label_area_size(MARGIN)
        .build_cartesian_2d(x.log_scale().with_key_points(ticks), y.log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .label_style(FONT)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|rate| format!("1e{:.0}", rate.log10()))
        .draw()?;
    for (name, line) in lines {
        let (style, dash) = style(names, *name);
        let line = line.iter().copied();
        match dash {
            0 => chart.draw_series(LineSeries::new(line, style))?,
            dash => chart.draw_series(DashedLineSeries::new(line, dash, dash, style))?,
        };
    }
    Ok(())
}

fn legend(
    area: &Area<'_>,
    names: &[Name<'_>],
    x_words: &str,
    columns: usize,
) -> Result<(), Failed> {
    let left = MARGIN as i32;
    let words = TextStyle::from(FONT.into_font()).pos(Pos::new(HPos::Left, VPos::Center));
    let title = format!("operations per second (median) over {x_words}; baselines dashed");
    area.draw(&Text::new(title, (left, 10), &words))?;
    for (number, name) in names.iter().enumerate() {
        let (style, dash) = style(names, *name);
        let x = left + (number % columns) as i32 * (WIDTH / 2) as i32;
        let y = 28 + (number / columns) as i32 * 18;
        let dash = if dash == 0 { 24 } else { dash as i32 };
        for begin in (0..24).step_by(2 * dash as usize) {
            let ends = [(x + begin, y), (x + begin + dash, y)];
            area.draw(&PathElement::new(ends, style))?;
        }
        area.draw(&Text::new(name.1, (x + 28, y), &words))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(panel: &str, is_baseline: bool, x: u32, rate: Option<f64>) -> Mark<'static> {
        Mark {
            panel: panel.to_owned(),
            is_baseline,
            lock: if is_baseline { "glibc_mutex" } else { "ticket" },
            x,
            rate,
        }
    }

    fn drawn(marks: &[Mark<'_>]) -> String {
        let mut svg = String::new();
        draw(&mut svg, marks, "threads").expect("a String takes it");
        svg
    }

    #[test]
    fn every_panel_and_lock_is_there() {
        let mut marks = Vec::new();
        for panel in ["hold 50ns", "hold 2us", "hold 20us", "hold 50us"] {
            for x in [1, 2, 16] {
                let rate = Some(1e7 / f64::from(x));
                marks.push(mark(panel, false, x, rate));
                marks.push(mark(panel, true, x, rate));
            }
        }
        let svg = drawn(&marks);
        for words in [
            "hold 2us",
            "hold 50us",
            "ticket",
            "glibc_mutex",
            "1e7",
            "over threads",
        ] {
            assert!(svg.contains(words), "{words}: {svg}");
        }
        // Two rows of panels, and a legend below them.
        assert!(svg.contains(r#"width="1020" height="528""#), "{svg}");
    }

    #[test]
    fn one_mark_and_none_are_drawn_as_well() {
        assert!(drawn(&[mark("hold 1us", false, 4, Some(1e6))]).contains("hold 1us"));
        assert!(drawn(&[mark("hold 1us", false, 4, None)]).contains("ticket"));
        assert!(drawn(&[]).contains("</svg>"));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = write(Path::new("/nonexistent/p.svg"), &[], "VMs").expect_err("no folder");
        let Error::Failed(error) = error else {
            panic!("{error}")
        };
        assert!(format!("{error:#}").contains("/nonexistent/p.svg: the plot cannot be written"));
    }
}
