// SPDX-License-Identifier: MIT OR Apache-2.0
//! One paper's file, `papers/NAME.toml`: what stands in it, and how it becomes [`Claim`]s.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::{
    claim::{Claim, Class, Expected, Figure, Unit},
    plot_text::PlotText,
    runs::Run,
    source::{Source, SourceText, Sources, World},
    table_text::TableText,
};

/// A paper.
#[derive(Debug)]
pub struct Paper {
    /// Its key: the file's stem.
    pub key: String,
    /// Authors, title, where it appeared.
    pub title: String,
    /// Its claims, in the file's order.
    pub claims: Vec<Claim>,
    /// What the lab runs for it.
    pub runs: Vec<Run>,
    /// Its tables that can be printed in its own form.
    pub(crate) tables: Vec<TableText>,
    /// Its figures, drawn in its own form or with the reason why not.
    pub(crate) plots: Vec<PlotText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperText {
    title: String,
    /// What holds in a world for each claim that says nothing else.
    #[serde(default)]
    worlds: BTreeMap<String, SourceText>,
    #[serde(default, rename = "run")]
    runs: Vec<Run>,
    #[serde(rename = "claim")]
    claims: Vec<ClaimText>,
    #[serde(default, rename = "table")]
    tables: Vec<TableText>,
    #[serde(default, rename = "plot")]
    plots: Vec<PlotText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimText {
    id: String,
    section: String,
    class: Class,
    text: String,
    /// Tests that check it, in every world: all of them run this code.
    rule: Option<Vec<String>>,
    lab: Option<SourceText>,
    kvm: Option<SourceText>,
    threads: Option<SourceText>,
    #[serde(default, rename = "figure")]
    figures: Vec<FigureText>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FigureText {
    what: String,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    ascending: bool,
    unit: Option<Unit>,
    of: String,
    side: Option<f64>,
    tolerance: f64,
    fitted: bool,
    lab: Option<SourceText>,
    kvm: Option<SourceText>,
    threads: Option<SourceText>,
    reason: String,
}

/// The sources that are given, in the order of [`World::ALL`].
type Given<'a> = [Option<&'a SourceText>; World::ALL.len()];

impl Paper {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is no such file; a claim, named, in which something is missing or contradicts itself.
    pub fn parse(key: &str, text: &str) -> anyhow::Result<Paper> {
        let text: PaperText = toml::from_str(text)?;
        for world in text.worlds.keys() {
            let known = World::ALL.iter().any(|known| known.name() == world);
            ensure!(known, "worlds.{world}: there are lab, kvm and threads");
        }
        for run in &text.runs {
            run.check()?;
        }
        for plot in &text.plots {
            plot.check()
                .with_context(|| format!("figure {} of the paper", plot.number))?;
        }
        let defaults = World::ALL.map(|world| text.worlds.get(world.name()));
        let claims = text.claims.iter();
        let claims =
            claims.map(|claim| claim.claim(key, defaults).with_context(|| claim.id.clone()));
        Ok(Paper {
            key: key.to_owned(),
            title: text.title,
            claims: claims.collect::<anyhow::Result<_>>()?,
            runs: text.runs,
            tables: text.tables,
            plots: text.plots,
        })
    }
}

impl ClaimText {
    fn claim(&self, paper: &str, defaults: Given) -> anyhow::Result<Claim> {
        let words = FigureText::default();
        let figures = match &self.figures[..] {
            [] => vec![&words],
            some => some.iter().collect(),
        };
        let figures = figures.into_iter().map(|figure| {
            let name = || format!("figure {:?}", figure.what);
            figure.figure(self, defaults).with_context(name)
        });
        Ok(Claim {
            id: self.id.clone(),
            paper: paper.to_owned(),
            section: self.section.clone(),
            class: self.class,
            text: self.text.clone(),
            figures: figures.collect::<anyhow::Result<_>>()?,
        })
    }
}

impl FigureText {
    fn figure(&self, claim: &ClaimText, defaults: Given) -> anyhow::Result<Figure> {
        let expected = self.expected()?;
        let sources = self.sources(claim, defaults)?;
        let figure = Figure {
            what: self.what.clone(),
            expected,
            unit: match (expected, self.unit) {
                (Expected::Range { .. }, None) => bail!("a number needs a unit"),
                (_, unit) => unit.unwrap_or(Unit::Ratio),
            },
            of: self.of.clone(),
            side: self.side,
            tolerance: self.tolerance,
            fitted: self.fitted,
            sources,
            reason: self.reason.clone(),
        };
        check(&figure, claim.class)?;
        Ok(figure)
    }

    fn expected(&self) -> anyhow::Result<Expected> {
        Ok(match (self.value, self.low, self.high, self.ascending) {
            (None, None, None, false) => Expected::Words,
            (None, None, None, true) => Expected::Ascending,
            (Some(value), None, None, false) => Expected::Range {
                low: value,
                high: value,
            },
            (None, low, high, false) => Expected::Range {
                low: low.unwrap_or(f64::NEG_INFINITY),
                high: high.unwrap_or(f64::INFINITY),
            },
            _ => bail!("one of value, low and high, ascending"),
        })
    }

    /// Of the figure, else of the claim, else its rule, else the paper's for that world.
    fn sources(&self, claim: &ClaimText, defaults: Given) -> anyhow::Result<Sources> {
        let own = [&self.lab, &self.kvm, &self.threads];
        let of_claim = [&claim.lab, &claim.kvm, &claim.threads];
        let each = World::ALL.map(|world| {
            let place = world as usize;
            let given = own[place].as_ref().or(of_claim[place].as_ref());
            let source = match (given, &claim.rule, defaults[place]) {
                (Some(given), ..) => given.source(),
                (None, Some(tests), _) => Ok(Source::Rule(tests.clone())),
                (None, None, Some(default)) => default.source(),
                (None, None, None) => {
                    bail!("nothing says where its figure comes from, or why there is none")
                }
            };
            source.with_context(|| world.name())
        });
        let [lab, kvm, threads] = each;
        Ok(Sources::new([lab?, kvm?, threads?]))
    }
}

/// What contradicts itself.
fn check(figure: &Figure, class: Class) -> anyhow::Result<()> {
    if let Expected::Range { low, high } = figure.expected {
        ensure!(low <= high, "low is above high");
    }
    ensure!(
        !figure.fitted || class == Class::B,
        "only a baseline (class B) may be fitted to"
    );
    ensure!(figure.tolerance >= 0.0, "tolerance is below 0");
    for world in World::ALL {
        let several = match figure.sources.of(world) {
            Source::Lab(lab) => lab.columns.len() > 1,
            Source::Benchmark(of) => of.rows.len() > 1,
            _ => continue,
        };
        let wanted = match figure.expected {
            Expected::Words => bail!("{}: words have no figure beside them", world.name()),
            Expected::Ascending => true,
            Expected::Range { .. } => false,
        };
        ensure!(
            several == wanted,
            "{}: several columns or rows are for a claim of order, and it alone",
            world.name()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "title = \"t\"\n[worlds]\nthreads = { cannot = \"no VMs\" }\nkvm = { missing = \"nobody did\" }\n";

    fn paper(claim: &str) -> anyhow::Result<Paper> {
        let claim =
            format!("{HEAD}[[claim]]\nid = \"X01\"\nsection = \"1\"\ntext = \"t\"\n{claim}");
        Paper::parse("x", &claim)
    }

    #[test]
    fn sources_are_the_figure_s_the_claim_s_the_rule_s_or_the_paper_s() {
        let of = "class = \"M\"\nlab = { missing = \"the claim's\" }\n[[claim.figure]]\nvalue = 2\nunit = \"ratio\"\n\
                  [[claim.figure]]\nvalue = 3\nunit = \"ratio\"\nlab = { run = \"r\", column = \"c\", measure = \"m\" }\n";
        let paper = paper(of).unwrap();
        let [first, second] = &paper.claims[0].figures[..] else {
            panic!()
        };
        assert!(
            matches!(first.sources.of(World::Lab), Source::Missing { reason, .. } if reason == "the claim's")
        );
        assert!(second.sources.of(World::Lab).is_run());
        assert!(
            matches!(first.sources.of(World::Kvm), Source::Missing { reason, .. } if reason == "nobody did")
        );
        assert!(matches!(
            first.sources.of(World::Threads),
            Source::Cannot { .. }
        ));
        assert_eq!((second.fit(), first.fit()), ("predicted", ""));
    }

    #[test]
    fn a_rule_holds_in_every_world() {
        let paper = paper("class = \"D\"\nrule = [\"a.rs::b\"]\n").unwrap();
        let figure = &paper.claims[0].figures[0];
        let rules = World::ALL.map(|world| matches!(figure.sources.of(world), Source::Rule(_)));
        assert_eq!(rules, [true; 3]);
        assert_eq!(figure.expected, Expected::Words);
    }

    #[test]
    fn what_is_not_whole_is_refused_with_its_name() {
        let lab = "lab = { run = \"r\", column = \"c\", measure = \"m\" }";
        let order = "lab = { run = \"r\", columns = [\"c\", \"d\"], measure = \"m\" }";
        for (claim, why) in [
            ("class = \"M\"".to_owned(), "nothing says where"),
            ("class = \"Q\"".into(), "unknown variant"),
            (format!("class = \"M\"\n{lab}"), "words have no figure"),
            (
                format!("class = \"M\"\n{lab}\n[[claim.figure]]\nvalue = 1"),
                "needs a unit",
            ),
            (
                format!(
                    "class = \"M\"\n{lab}\n[[claim.figure]]\nvalue = 1\nlow = 0\nunit = \"ratio\""
                ),
                "one of value",
            ),
            (
                format!(
                    "class = \"M\"\n{lab}\n[[claim.figure]]\nlow = 2\nhigh = 1\nunit = \"ratio\""
                ),
                "low is above",
            ),
            (
                format!(
                    "class = \"M\"\n{lab}\n[[claim.figure]]\nvalue = 1\nfitted = true\nunit = \"ratio\""
                ),
                "class B",
            ),
            (
                format!("class = \"M\"\n{order}\n[[claim.figure]]\nvalue = 1\nunit = \"ratio\""),
                "claim of order",
            ),
            (
                format!("class = \"M\"\n{lab}\n[[claim.figure]]\nascending = true"),
                "claim of order",
            ),
        ] {
            let error = format!("{:#}", paper(&claim).expect_err(&claim));
            assert!(error.contains(why), "{error}");
        }
        let error = paper("class = \"M\"\nlab = { cannot = \"\" }").expect_err("no reason");
        assert!(format!("{error:#}").starts_with("X01: "), "{error:#}");
    }
}
