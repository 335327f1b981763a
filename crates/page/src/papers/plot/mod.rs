// SPDX-License-Identifier: MIT OR Apache-2.0
//! A paper's figure as a picture (SVG): the lab's numbers as bars or lines with their intervals, the paper's as diamonds, KVM's as
//! triangles. Series have numbers beside their colours, so that it says the same in black and white.

mod legend;
mod scale;
mod style;

use plotters::{
    coord::types::RangedCoordf64,
    element::{PathElement, Polygon},
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use unspin_papers::{
    Unit,
    plots::{Form, Mark, MarkSource, Panel, Plot},
};

use scale::Scale;
use style::{Area, FONT, Failed, SMALL, colour};

const HEIGHT: u32 = 250;
/// Room for the labels of groups, two lines of them, and the numbers of series above.
const LABELS: u32 = 56;
const MARGIN: u32 = 60;
/// Width of a bar, and of the gap between groups.
const BAR: u32 = 22;
const GAP: u32 = 24;
const GROUP_LEAST: u32 = 84;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Draws a figure; the same figure gives the same text.
///
/// # Errors
/// When it cannot be drawn: an error of this program.
pub fn svg(plot: &Plot) -> Result<String, Failed> {
    let mut svg = String::new();
    let width = width(plot);
    let height = plot.panels.len() as u32 * HEIGHT + legend::height(plot, width);
    {
        let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let (charts, below) = root.split_vertically(plot.panels.len() as u32 * HEIGHT);
        let areas = charts.split_evenly((plot.panels.len().max(1), 1));
        for (panel, area) in plot.panels.iter().zip(&areas) {
            draw_panel(area, plot, panel)?;
        }
        legend::draw(&below, plot, width)?;
        root.present()?;
    }
    Ok(svg)
}

fn width(plot: &Plot) -> u32 {
    let bars = |panel: &Panel| match plot.form {
        Form::Bars => panel.series.len() as u32,
        Form::Stacked | Form::Lines => 1,
    };
    let group = |panel: &Panel| (bars(panel) * BAR + GAP).max(GROUP_LEAST);
    let panels = plot.panels.iter();
    let wide = panels
        .map(|panel| panel.groups.len() as u32 * group(panel))
        .max();
    (MARGIN + 20 + wide.unwrap_or(0)).max(420)
}

fn draw_panel(area: &Area<'_>, plot: &Plot, panel: &Panel) -> Result<(), Failed> {
    let scale = Scale::of(plot, panel);
    let groups = panel.groups.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(caption(plot, panel), FONT)
        .margin_right(15)
        .margin_top(4)
        .x_label_area_size(LABELS)
        .y_label_area_size(MARGIN)
        .build_cartesian_2d(0.0..groups, scale.low..scale.high)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(6)
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xdd, 0xdd, 0xdd))
        .label_style(SMALL)
        .y_label_formatter(&|place| scale.label(*place))
        .draw()?;
    let bars = Bars::of(plot, panel);
    match plot.form {
        Form::Lines => draw_lines(&mut chart, panel, &scale)?,
        Form::Bars | Form::Stacked => draw_bars(&mut chart, panel, &scale, &bars)?,
    }
    for mark in &panel.marks {
        draw_mark(&mut chart, mark, &scale, &bars)?;
    }
    draw_labels(&chart, area, panel, &bars)
}

fn caption(plot: &Plot, panel: &Panel) -> String {
    let unit = match panel.unit {
        Unit::Percent | Unit::ChangePercent => ", %",
        Unit::Nanoseconds => ", ns",
        Unit::Ratio | Unit::PerSecond | Unit::Count => "",
    };
    let powers = if plot.log { " (by powers)" } else { "" };
    format!("{}{unit}{powers}", panel.title)
}

/// Where bars stand in a group that is 1 wide.
struct Bars {
    form: Form,
    count: usize,
    /// Whose numbers are bars: the lab's, and KVM's where the lab has none.
    source: MarkSource,
}

impl Bars {
    fn of(plot: &Plot, panel: &Panel) -> Bars {
        let has_lab = panel
            .marks
            .iter()
            .any(|mark| mark.source == MarkSource::Lab);
        Bars {
            form: plot.form,
            count: match plot.form {
                Form::Bars => panel.series.len().max(1),
                Form::Stacked | Form::Lines => 1,
            },
            source: if has_lab {
                MarkSource::Lab
            } else {
                MarkSource::Kvm
            },
        }
    }

    /// From and to, of a series in a group.
    fn span(&self, group: usize, series: usize) -> (f64, f64) {
        let (from, wide) = (0.12, 0.76 / self.count as f64);
        let place = if self.count == 1 { 0 } else { series };
        let from = group as f64 + from + wide * place as f64;
        (from + wide * 0.08, from + wide * 0.92)
    }

    fn middle(&self, group: usize, series: usize) -> f64 {
        let (from, to) = self.span(group, series);
        (from + to) / 2.0
    }
}

fn draw_bars(
    chart: &mut Chart<'_, '_>,
    panel: &Panel,
    scale: &Scale,
    bars: &Bars,
) -> Result<(), Failed> {
    let mut tops = vec![0.0; panel.groups.len()];
    let marks = panel.marks.iter().filter(|mark| mark.source == bars.source);
    for mark in marks {
        let Some(value) = mark.value else { continue };
        let (from, to) = bars.span(mark.group, mark.series);
        let bottom = match bars.form {
            Form::Stacked => tops[mark.group],
            Form::Bars | Form::Lines => 0.0,
        };
        tops[mark.group] += value;
        let corners = [
            (from, scale.place(bottom)),
            (to, scale.place(bottom + value)),
        ];
        let fill = Rectangle::new(corners, colour(mark.series).filled());
        let border = Rectangle::new(corners, BLACK.stroke_width(1));
        chart.draw_series([fill, border])?;
    }
    Ok(())
}

fn draw_lines(chart: &mut Chart<'_, '_>, panel: &Panel, scale: &Scale) -> Result<(), Failed> {
    for series in 0..panel.series.len() {
        let is_of = |mark: &&Mark| mark.source == MarkSource::Lab && mark.series == series;
        let marks = panel.marks.iter().filter(is_of);
        let points: Vec<(f64, f64)> = marks
            .filter_map(|mark| Some((mark.group as f64 + 0.5, scale.place(mark.value?))))
            .collect();
        let line = PathElement::new(points.clone(), colour(series + 1).stroke_width(2));
        chart.draw_series([line])?;
        let last = points.last().map(|last| {
            let style = FONT.into_text_style(chart.plotting_area());
            Text::new((series + 1).to_string(), (last.0 + 0.06, last.1), style)
        });
        chart.draw_series(last)?;
        let dots = points
            .into_iter()
            .map(|point| Circle::new(point, 4, colour(series + 1).filled()));
        chart.draw_series(dots)?;
    }
    Ok(())
}

/// The interval of a mark, and its sign where it is no bar.
fn draw_mark(
    chart: &mut Chart<'_, '_>,
    mark: &Mark,
    scale: &Scale,
    bars: &Bars,
) -> Result<(), Failed> {
    // A share's own value lies nowhere in a pile of shares.
    if bars.form == Form::Stacked {
        return Ok(());
    }
    let aside = match (bars.form, mark.source) {
        (Form::Lines, _) => 0.0,
        (_, source) if source == bars.source => 0.0,
        (_, MarkSource::Paper) => -0.18 / bars.count as f64,
        _ => 0.18 / bars.count as f64,
    };
    let x = match bars.form {
        Form::Lines => mark.group as f64 + 0.5 + 0.02 * mark.series as f64,
        _ => bars.middle(mark.group, mark.series) + aside,
    };
    if let (Some(low), Some(high)) = (mark.low, mark.high) {
        let ends = vec![(x, scale.place(low)), (x, scale.place(high))];
        let width = if mark.source == MarkSource::Paper {
            3
        } else {
            1
        };
        chart.draw_series([PathElement::new(ends, BLACK.stroke_width(width))])?;
    }
    let Some(value) = mark.value else {
        return Ok(());
    };
    let at = (x, scale.place(value));
    match mark.source {
        MarkSource::Paper => {
            let diamond = EmptyElement::at(at)
                + Polygon::new([(0, -6), (5, 0), (0, 6), (-5, 0)], BLACK.filled());
            chart.draw_series([diamond])?;
        }
        source if source != bars.source => {
            let corners = [(0, -6), (6, 5), (-6, 5)];
            let outline = [corners[0], corners[1], corners[2], corners[0]];
            let triangle = EmptyElement::at(at)
                + Polygon::new(corners, WHITE.filled())
                + PathElement::new(outline, BLACK.stroke_width(2));
            chart.draw_series([triangle])?;
        }
        _ => {}
    }
    Ok(())
}

/// Numbers of series below their bars, and names of groups below these.
fn draw_labels(
    chart: &Chart<'_, '_>,
    area: &Area<'_>,
    panel: &Panel,
    bars: &Bars,
) -> Result<(), Failed> {
    let origin = area.get_base_pixel();
    let bottom = chart.plotting_area().get_pixel_range().1.end - origin.1;
    let x = |place: f64| {
        let range = chart.plotting_area().get_pixel_range().0;
        let wide = f64::from(range.end - range.start);
        range.start - origin.0 + (wide * place / panel.groups.len().max(1) as f64) as i32
    };
    let middle = Pos::new(HPos::Center, VPos::Top);
    let small = SMALL.into_text_style(area).pos(middle);
    let font = FONT.into_text_style(area).pos(middle);
    for (group, name) in panel.groups.iter().enumerate() {
        if bars.count > 1 {
            for series in 0..panel.series.len() {
                let at = (x(bars.middle(group, series)), bottom + 3);
                area.draw_text(&(series + 1).to_string(), &small, at)?;
            }
        }
        let lines = name.splitn(2, ", ");
        for (line, text) in lines.enumerate() {
            let at = (x(group as f64 + 0.5), bottom + 18 + 15 * line as i32);
            area.draw_text(text, &font, at)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(form: Form, marks: Vec<Mark>) -> Plot {
        Plot {
            paper: "x".into(),
            number: 1,
            title: "t".into(),
            note: String::new(),
            form,
            log: false,
            panels: vec![Panel {
                title: "<to> stock".into(),
                unit: Unit::Ratio,
                groups: vec!["a, b".into(), "c".into()],
                series: vec!["one & two".into(), "three".into()],
                marks,
            }],
        }
    }

    fn mark(group: usize, series: usize, source: MarkSource, value: Option<f64>) -> Mark {
        Mark {
            group,
            series,
            source,
            value,
            low: Some(0.5),
            high: Some(9.0),
            count: Some(5),
            is_stale: false,
        }
    }

    fn all() -> Vec<Mark> {
        vec![
            mark(0, 0, MarkSource::Paper, None),
            mark(0, 0, MarkSource::Lab, Some(1.0)),
            mark(0, 1, MarkSource::Lab, Some(2.0)),
            mark(1, 1, MarkSource::Kvm, Some(3.0)),
        ]
    }

    #[test]
    fn every_form_is_drawn_and_the_same_twice() {
        for form in [Form::Bars, Form::Stacked, Form::Lines] {
            let plot = plot(form, all());
            let text = svg(&plot).unwrap();
            assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"));
            assert_eq!(svg(&plot).unwrap(), text);
            assert!(text.contains("&lt;to&gt; stock") && text.contains("1 one &amp; two"));
        }
    }

    #[test]
    fn paper_and_kvm_have_signs_of_their_own() {
        let signs = |marks| {
            svg(&plot(Form::Bars, marks))
                .unwrap()
                .matches("<polygon")
                .count()
        };
        assert_eq!(signs(all()), 1);
        let mut both = all();
        both.push(mark(1, 0, MarkSource::Paper, Some(1.5)));
        assert_eq!(signs(both), 2);
        // Where the lab has nothing KVM's are the bars.
        assert_eq!(signs(vec![mark(1, 1, MarkSource::Kvm, Some(3.0))]), 0);
    }

    #[test]
    fn a_figure_without_numbers_and_one_by_powers_are_drawn() {
        assert!(svg(&plot(Form::Bars, Vec::new())).is_ok());
        let mut powers = plot(Form::Bars, all());
        powers.log = true;
        powers.panels[0]
            .marks
            .push(mark(1, 0, MarkSource::Lab, Some(0.0)));
        assert!(svg(&powers).unwrap().contains("(by powers)"));
    }

    #[test]
    fn what_is_outside_of_an_axis_lies_on_its_border() {
        let of = plot(Form::Bars, all());
        let scale = Scale::of(&of, &of.panels[0]);
        // 9 is far above the largest value, 3.
        assert_eq!((scale.low, scale.high), (0.0, 3.0 * 1.05));
        assert_eq!((scale.place(9.0), scale.place(-1.0)), (scale.high, 0.0));
    }
}
