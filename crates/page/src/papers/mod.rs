// SPDX-License-Identifier: MIT OR Apache-2.0
//! Five papers, one model: what each paper claims beside what the lab and KVM gave, failures first; the papers' own figures; and every
//! remedy under every load. As closed and as repeatable as the page of a recording. Without its script it says the same.

mod heat;
mod plot;

use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use unspin_papers::{
    Papers, Verdict,
    heat::HeatMap,
    page::Counts,
    rows::{ClaimRow, Judged},
    verdict::SIZE_RATIO,
};

pub use plot::svg;

use crate::{BYTES_MAX, PageError, hash};

const TEMPLATE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// What is left out of a page that would be too long, more from step to step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LeftOut {
    Nothing,
    Superseded,
    Figures,
}

/// The page of a tree's claims, of at most [`BYTES_MAX`] bytes; where it would be longer it leaves out measurements that newer ones
/// replaced, then the papers' figures, and says so. `commit`: of this program.
///
/// # Errors
/// A tree whose claims or figures contradict themselves; see [`PageError`].
pub fn page(papers: &Papers, commit: &str) -> Result<String, PageError> {
    let heat = papers.heat_map().map_err(PageError::Papers)?;
    let judged = papers.judged(|_| true).map_err(PageError::Papers)?;
    for left_out in [LeftOut::Nothing, LeftOut::Superseded, LeftOut::Figures] {
        let text = within(papers, &heat, &judged, commit, left_out)?;
        if text.len() <= BYTES_MAX {
            return Ok(text);
        }
        if left_out == LeftOut::Figures {
            return Err(PageError::Large(text.len()));
        }
    }
    unreachable!("the last step ends it")
}

/// A paper's part of the page.
#[derive(Serialize)]
struct PaperPart {
    key: String,
    title: String,
    counts: Vec<usize>,
    claims: usize,
    figures: Vec<FigurePart>,
    plots: Vec<PlotPart>,
    refused: Vec<RefusedPart>,
}

/// A number of a claim.
#[derive(Serialize)]
struct FigurePart {
    verdict: &'static str,
    class: String,
    sign: &'static str,
    kind: &'static str,
    row: ClaimRow,
    has_figure: bool,
}

/// A figure of the paper in its own form.
#[derive(Serialize)]
struct PlotPart {
    number: u32,
    title: String,
    note: String,
    svg: String,
    rows: Vec<unspin_papers::plots::rows::PlotRow>,
}

#[derive(Serialize)]
struct RefusedPart {
    number: u32,
    title: String,
    reason: String,
}

fn within(
    papers: &Papers,
    heat: &HeatMap,
    judged: &[Judged<'_>],
    commit: &str,
    left_out: LeftOut,
) -> Result<String, PageError> {
    let mut parts = Vec::new();
    for paper in &papers.papers {
        parts.push(part(papers, &paper.key, &paper.title, judged, left_out)?);
    }
    let verdicts = Verdict::ALL.map(|verdict| {
        context! {
            name => verdict.name(), class => class(verdict), sign => sign(verdict),
        }
    });
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("page", TEMPLATE)?;
    let shown_all = left_out == LeftOut::Nothing;
    let context = context! {
        script => SCRIPT,
        style => STYLE,
        script_hash => hash(SCRIPT),
        style_hash => hash(STYLE),
        verdicts,
        papers => parts,
        counts => Counts::of(judged).text(),
        size_ratio => SIZE_RATIO,
        steps => heat::steps(),
        maps => heat::maps(heat),
        measurements => heat::measurements(heat, shown_all),
        superseded_left_out => !shown_all,
        figures_left_out => left_out == LeftOut::Figures,
        commit,
    };
    Ok(environment.get_template("page")?.render(context)?)
}

fn part(
    papers: &Papers,
    key: &str,
    title: &str,
    judged: &[Judged<'_>],
    left_out: LeftOut,
) -> Result<PaperPart, PageError> {
    let of: Vec<&Judged> = judged.iter().filter(|one| one.claim.paper == key).collect();
    let mut plots = Vec::new();
    let mut refused = Vec::new();
    for (number, is_drawn) in papers.plot_numbers(key) {
        if !is_drawn {
            let (title, reason) = papers.plot_refused(key, number).unwrap_or_default();
            refused.push(RefusedPart {
                number,
                title: title.to_owned(),
                reason: reason.to_owned(),
            });
        } else if left_out < LeftOut::Figures {
            plots.push(plot_part(papers, key, number)?);
        }
    }
    let counts = Verdict::ALL.map(|verdict| of.iter().filter(|one| one.verdict == verdict).count());
    Ok(PaperPart {
        key: key.to_owned(),
        title: title.to_owned(),
        counts: counts.to_vec(),
        claims: of.len(),
        figures: of.into_iter().map(figure_part).collect(),
        plots,
        refused,
    })
}

fn plot_part(papers: &Papers, key: &str, number: u32) -> Result<PlotPart, PageError> {
    let plot = papers.plot(key, number).map_err(PageError::Papers)?;
    let svg = svg(&plot).map_err(|error| PageError::Plot(error.to_string()))?;
    Ok(PlotPart {
        number,
        title: plot.title.clone(),
        note: plot.note.clone(),
        svg,
        rows: plot.panels.iter().flat_map(|panel| panel.rows()).collect(),
    })
}

fn figure_part(one: &Judged<'_>) -> FigurePart {
    FigurePart {
        verdict: one.verdict.name(),
        class: class(one.verdict),
        sign: sign(one.verdict),
        kind: match one.claim.class {
            unspin_papers::Class::B => "baseline",
            unspin_papers::Class::M => "with a remedy",
            unspin_papers::Class::D => "definition",
            unspin_papers::Class::L => "limitation",
        },
        has_figure: !one.figure.what.is_empty(),
        row: one.row(),
    }
}

/// The verdict's class in the style sheet.
fn class(verdict: Verdict) -> String {
    let letters = verdict.name().chars();
    let words: String = letters.filter(|letter| *letter != ',').collect();
    words.replace(' ', "-")
}

/// The verdict's sign, for those who see no colours.
fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Disagrees => "✗",
        Verdict::NotResolved => "?",
        Verdict::NotMeasured => "○",
        Verdict::AgreesInKind => "≈",
        Verdict::AgreesInSize => "✓",
        Verdict::Tested => "§",
        Verdict::CannotBeHad => "–",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_a_class_and_a_sign_each() {
        let classes = Verdict::ALL.map(class);
        assert_eq!(class(Verdict::Tested), "rule-tested");
        for (verdict, class) in Verdict::ALL.iter().zip(&classes) {
            assert!(STYLE.contains(&format!(".{class}")), "{class}");
            let others = Verdict::ALL.iter().filter(|other| *other != verdict);
            assert!(others.clone().all(|other| sign(*other) != sign(*verdict)));
        }
    }

    #[test]
    fn nothing_in_script_and_style_reaches_out() {
        for text in [SCRIPT, STYLE, TEMPLATE] {
            for word in [
                "http:",
                "https:",
                "//cdn",
                "fetch(",
                "XMLHttp",
                "import ",
                "url(",
                "eval(",
                "innerHTML",
            ] {
                assert!(!text.contains(word), "{word}");
            }
        }
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
        assert!(SCRIPT.ends_with('\n') && STYLE.ends_with('\n'));
    }
}
