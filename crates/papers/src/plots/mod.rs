// SPDX-License-Identifier: MIT OR Apache-2.0
//! The papers' own figures: what is drawn, from the lab's runs and `benchmarks/`, and the paper's own numbers beside it where a claim
//! has them. Only the papers' texts are known: a bar or point whose number is not in the text has no mark of the paper.

pub mod rows;

use anyhow::{Context, bail, ensure};

use crate::{
    benchmark::{has_all, own_pairs},
    claim::{Expected, Figure, Unit},
    measured::Measured,
    papers::Papers,
    plot_text::{KvmText, PartText, PlotText},
    runs::Run,
    source::{BenchmarkSource, LabSource, Pairs, Source, World, json},
};

pub use crate::plot_text::Form;

/// A figure of a paper.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The paper's key.
    pub paper: String,
    /// Its number there.
    pub number: u32,
    /// What it shows.
    pub title: String,
    /// What is different from the paper's; may be empty.
    pub note: String,
    /// How it is drawn.
    pub form: Form,
    /// Whether its axis goes by powers.
    pub log: bool,
    /// Its parts, each with an axis of its own.
    pub panels: Vec<Panel>,
}

/// A part of a figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What its axis counts, in words.
    pub title: String,
    /// What its axis counts.
    pub unit: Unit,
    /// What stands along the other axis.
    pub groups: Vec<String>,
    /// What has a colour each.
    pub series: Vec<String>,
    /// What is drawn: by group, series, and who says it.
    pub marks: Vec<Mark>,
}

/// Who says a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkSource {
    /// The paper's text.
    Paper,
    /// The lab.
    Lab,
    /// Guests under KVM.
    Kvm,
}

impl MarkSource {
    /// As `--json` spells it.
    pub fn name(self) -> &'static str {
        match self {
            MarkSource::Paper => "paper",
            MarkSource::Lab => "lab",
            MarkSource::Kvm => "kvm",
        }
    }
}

/// A number of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Place among [`Panel::groups`].
    pub group: usize,
    /// Place among [`Panel::series`].
    pub series: usize,
    /// Who says it.
    pub source: MarkSource,
    /// The number; none where the paper gives bounds alone.
    pub value: Option<f64>,
    /// Lower bound of its interval or, of the paper's, of what it says.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Seeds or pairs.
    pub count: Option<u32>,
    /// Whether the lab, a policy or a lock has changed since.
    pub is_stale: bool,
}

impl Papers {
    /// Numbers of a paper's figures, in order, and whether each can be drawn.
    pub fn plot_numbers(&self, paper: &str) -> Vec<(u32, bool)> {
        let of = self.papers.iter().find(|one| one.key == paper);
        let plots = of.into_iter().flat_map(|of| &of.plots);
        plots
            .map(|plot| (plot.number, plot.cannot.is_none()))
            .collect()
    }

    /// The title of a figure of a paper that is not drawn, and why it is not; none of one that is, or of which nothing is known.
    pub fn plot_refused(&self, paper: &str, number: u32) -> Option<(&str, &str)> {
        let of = self.papers.iter().find(|one| one.key == paper)?;
        let plot = of.plots.iter().find(|plot| plot.number == number)?;
        let reason = plot.cannot.as_deref()?;
        Some((&plot.title, reason))
    }

    /// The paper's figure of that number.
    ///
    /// # Errors
    /// A figure that cannot be drawn, with the reason; one that the paper does not have; a source of it that is not there.
    pub fn plot(&self, paper: &str, number: u32) -> anyhow::Result<Plot> {
        let of = self.papers.iter().find(|one| one.key == paper);
        let of = of.with_context(|| format!("there is no paper {paper:?}"))?;
        let Some(plot) = of.plots.iter().find(|plot| plot.number == number) else {
            bail!("{paper} has no figure {number}; {}", self.which(paper))
        };
        if let Some(reason) = &plot.cannot {
            bail!(
                "{paper}, figure {number} ({}): {reason}; {}",
                plot.title,
                self.which(paper)
            )
        }
        let panels = plot.panels.iter().map(|panel| self.panel(plot, panel));
        let context = || format!("{paper}, figure {number}");
        Ok(Plot {
            paper: paper.to_owned(),
            number,
            title: plot.title.clone(),
            note: plot.note.clone(),
            form: plot.form,
            log: plot.log,
            panels: panels
                .collect::<anyhow::Result<_>>()
                .with_context(context)?,
        })
    }

    /// Which figures of a paper can be drawn, as an end of a message.
    fn which(&self, paper: &str) -> String {
        let numbers = self.plot_numbers(paper);
        let drawn: Vec<String> = numbers
            .iter()
            .filter(|(_, is_drawn)| *is_drawn)
            .map(|(number, _)| number.to_string())
            .collect();
        match drawn[..] {
            [] => format!("no figure of {paper} can be drawn"),
            _ => format!("there are {}", drawn.join(", ")),
        }
    }

    fn panel(&self, plot: &PlotText, panel: &PartText) -> anyhow::Result<Panel> {
        let unit = panel.unit.context("a panel needs a unit")?;
        let mut marks = Vec::new();
        for (group, group_text) in plot.groups.iter().enumerate() {
            for (series, series_text) in plot.series.iter().enumerate() {
                let of = PartText::joined(panel, group_text, series_text);
                let context = || format!("{}, {}", group_text.label, series_text.label);
                let told = self.told(&of, unit).with_context(context)?;
                marks.extend(told.into_iter().map(|mark| Mark {
                    group,
                    series,
                    ..mark
                }));
            }
        }
        let labels = |parts: &[PartText]| parts.iter().map(|part| part.label.clone()).collect();
        Ok(Panel {
            title: panel.label.clone(),
            unit,
            groups: labels(&plot.groups),
            series: labels(&plot.series),
            marks,
        })
    }

    /// What the paper, the lab and KVM say of a bar or point.
    fn told(&self, of: &PartText, unit: Unit) -> anyhow::Result<Vec<Mark>> {
        let mut marks = Vec::new();
        let mut kvm = of
            .kvm
            .as_ref()
            .map(|kvm| self.kvm(kvm, unit))
            .transpose()?
            .flatten();
        if let Some(source) = of.lab() {
            let run = self.run(&source.runs[0])?;
            let claimed = self.claimed(&source);
            marks.extend(claimed.and_then(|figure| of_paper(figure, unit)));
            let columns: Vec<&String> = source.columns.iter().chain(&source.over).collect();
            for column in &columns {
                let has = |run: &Run| run.columns.contains_key(*column);
                ensure!(self.runs().any(has), "no run has a column {column}");
            }
            // A column that this run does not have was never measured with this load.
            if columns
                .iter()
                .all(|column| run.columns.contains_key(*column))
            {
                marks.extend(self.lab_mark(&source, unit)?);
            }
            if let (None, Some(figure)) = (&kvm, claimed) {
                let measured = self.measured(figure, World::Kvm)?;
                kvm = measured
                    .and_then(|measured| mark(MarkSource::Kvm, &measured, figure.unit, unit));
            }
        }
        marks.extend(kvm);
        Ok(marks)
    }

    fn lab_mark(&self, source: &LabSource, unit: Unit) -> anyhow::Result<Option<Mark>> {
        let Some(figure) = self.lab.figure(source, unit)? else {
            return Ok(None);
        };
        let columns = source.columns.iter().chain(&source.over);
        let stale = self.stale_since(&source.runs[0], columns.map(String::as_str));
        let mark = mark(MarkSource::Lab, &figure, unit, unit);
        Ok(mark.map(|mark| Mark {
            is_stale: !stale.is_empty(),
            ..mark
        }))
    }

    /// The claim's figure that the lab measures this way, if its paper gives a number.
    fn claimed(&self, source: &LabSource) -> Option<&Figure> {
        let claims = self.papers.iter().flat_map(|paper| &paper.claims);
        let figures = claims.flat_map(|claim| &claim.figures);
        let same = figures.filter(
            |figure| matches!(figure.sources.of(World::Lab), Source::Lab(of) if of == source),
        );
        // A number says more than bounds, of which an abstract may have wider ones.
        let rank = |figure: &&Figure| match figure.expected {
            Expected::Range { low, high } if low == high => Some(0),
            Expected::Range { .. } => Some(1),
            Expected::Words | Expected::Ascending => None,
        };
        same.filter(|figure| rank(figure).is_some())
            .min_by_key(rank)
    }

    fn kvm(&self, text: &KvmText, unit: Unit) -> anyhow::Result<Option<Mark>> {
        let named = text.benchmark.as_ref().filter(|name| !name.is_empty());
        let (Some(benchmark), Some(key)) = (named, &text.key) else {
            return Ok(None);
        };
        ensure!(!text.row.is_empty(), "kvm: say which row");
        let row = json(&text.row)?;
        let of = self.benchmarks.get(benchmark);
        let of = of.with_context(|| format!("there is no measurement {benchmark}"))?;
        let found = of.rows().iter().find(|found| has_all(found, &row));
        let own = found.and_then(own_pairs);
        let over = text.over.as_ref().map(|over| {
            let mut whole = text.row.clone();
            whole.extend(over.clone());
            json(&whole)
        });
        let pairs = own.map(|own| own as u32).or(text.pairs);
        let source = BenchmarkSource {
            benchmark: benchmark.clone(),
            rows: vec![row],
            claim: None,
            key: key.clone(),
            part: text.part.unwrap_or(0),
            over: over.transpose()?,
            cell_is_ratio: false,
            inverse: text.inverse.unwrap_or(false),
            pairs: Pairs {
                pairs: pairs.unwrap_or(0),
                shortfall: false,
            },
        };
        let figure = self.benchmarks.figure(&source, unit)?;
        let mark = mark(MarkSource::Kvm, &figure, unit, unit);
        Ok(mark.map(|mark| Mark {
            count: pairs,
            ..mark
        }))
    }
}

/// The paper's own number.
fn of_paper(figure: &Figure, unit: Unit) -> Option<Mark> {
    let Expected::Range { low, high } = figure.expected else {
        return None;
    };
    let bound = |bound: f64| match bound.is_finite() {
        true => converted(bound, figure.unit, unit),
        false => None,
    };
    let (low, high) = (bound(low), bound(high));
    low.or(high)?;
    Some(Mark {
        group: 0,
        series: 0,
        source: MarkSource::Paper,
        value: low.filter(|low| Some(*low) == high),
        low,
        high,
        count: None,
        is_stale: false,
    })
}

fn mark(source: MarkSource, of: &Measured, from: Unit, to: Unit) -> Option<Mark> {
    let bound = |bound: fn((f64, f64)) -> f64| converted(bound(of.interval?), from, to);
    Some(Mark {
        group: 0,
        series: 0,
        source,
        value: Some(converted(of.value()?, from, to)?),
        low: bound(|(low, _)| low),
        high: bound(|(_, high)| high),
        count: Some(of.pairs.pairs),
        is_stale: !of.stale.is_empty(),
    })
}

/// A value in another unit; none where the two count different things.
fn converted(value: f64, from: Unit, to: Unit) -> Option<f64> {
    match (from, to) {
        _ if from == to => Some(value),
        (Unit::ChangePercent, Unit::Ratio) => Some(1.0 + value / 100.0),
        (Unit::Ratio, Unit::ChangePercent) => Some(100.0 * (value - 1.0)),
        _ => None,
    }
}

/// What `make lint` asks of the figures of all papers: that each can be drawn or says why not, and that no number stands twice.
///
/// # Errors
/// A figure of which a source is not there.
pub(crate) fn check(papers: &Papers) -> anyhow::Result<()> {
    for paper in &papers.papers {
        let mut numbers = std::collections::BTreeSet::new();
        for plot in &paper.plots {
            ensure!(
                numbers.insert(plot.number),
                "{}: two figures {}",
                paper.key,
                plot.number
            );
            if plot.cannot.is_none() {
                papers.plot(&paper.key, plot.number)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
