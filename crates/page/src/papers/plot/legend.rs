// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands below a picture: what its signs mean, and which series has which number and colour.

use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use unspin_papers::plots::{Form, MarkSource, Plot};

use super::style::{Area, FONT, Failed, colour};

/// Height of a line.
const LINE: u32 = 18;

/// What the signs mean, then a word for each series.
fn words(plot: &Plot) -> Vec<(Option<usize>, String)> {
    let panels = plot.panels.iter();
    let has = |source: MarkSource| {
        let mut marks = panels.clone().flat_map(|panel| &panel.marks);
        marks.any(|mark| mark.source == source)
    };
    let (paper, lab, kvm) = (
        has(MarkSource::Paper),
        has(MarkSource::Lab),
        has(MarkSource::Kvm),
    );
    let has_marks = plot.form != Form::Stacked;
    let shape = if plot.form == Form::Lines {
        "line"
    } else {
        "bar"
    };
    let mut words = Vec::new();
    if lab {
        words.push((None, format!("{shape}: lab")));
    }
    if kvm && (has_marks || !lab) {
        let sign = if lab { "triangle" } else { shape };
        words.push((None, format!("{sign}: KVM")));
    }
    if paper && has_marks {
        words.push((None, "diamond, thick line: the paper's text".to_owned()));
    }
    if has_marks {
        words.push((None, "thin line: interval".to_owned()));
    }
    let series = plot.panels.first().map_or(&[][..], |panel| &panel.series);
    let series = series.iter().enumerate();
    words.extend(series.map(|(place, name)| (Some(place), format!("{} {name}", place + 1))));
    words
}

/// Width of a word of the legend with its square: this backend knows no widths of letters.
fn word_width(word: &str) -> u32 {
    24 + 7 * word.chars().count() as u32
}

/// A word of the legend in its place.
struct Word {
    series: Option<usize>,
    text: String,
    x: u32,
    line: u32,
}

fn laid_out(plot: &Plot, width: u32) -> Vec<Word> {
    let (mut x, mut line) = (10, 0);
    let mut placed = Vec::new();
    for (series, text) in words(plot) {
        let wide = word_width(&text);
        if x > 10 && x + wide > width {
            (x, line) = (10, line + 1);
        }
        placed.push(Word {
            series,
            text,
            x,
            line,
        });
        x += wide;
    }
    placed
}

/// Its height in a picture of that width.
pub(super) fn height(plot: &Plot, width: u32) -> u32 {
    let lines = laid_out(plot, width).last().map_or(0, |word| word.line + 1);
    lines * LINE + 8
}

/// Draws it.
///
/// # Errors
/// When it cannot be drawn.
pub(super) fn draw(area: &Area<'_>, plot: &Plot, width: u32) -> Result<(), Failed> {
    let style = FONT
        .into_text_style(area)
        .pos(Pos::new(HPos::Left, VPos::Top));
    for word in laid_out(plot, width) {
        let (mut x, y) = (word.x as i32, (4 + word.line * LINE) as i32);
        if let Some(series) = word.series {
            let shade = match plot.form {
                Form::Lines => colour(series + 1),
                Form::Bars | Form::Stacked => colour(series),
            };
            let corners = [(x, y), (x + 11, y + 11)];
            area.draw(&Rectangle::new(corners, shade.filled()))?;
            area.draw(&Rectangle::new(corners, BLACK.stroke_width(1)))?;
            x += 16;
        }
        area.draw_text(&word.text, &style, (x, y))?;
    }
    Ok(())
}
