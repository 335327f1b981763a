// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin paper`: what the papers claim beside what was measured of it, failures first; and `--run`, which measures what is
//! missing or stale.

pub(crate) mod args;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use unspin_experiment::paper_run::{self, Due};
use unspin_page::papers::svg;
use unspin_papers::{
    Claim, Papers, Source, Verdict, World, kvm_commands::commands, page::Counts, papers::find_root,
    rows::Judged,
};
use unspin_report::{Document, Table};

use self::args::{PaperArguments, RunWorld};
use crate::terminal::{failure::Failure, output, progress::Experiment};

/// Runs what is due, and prints the tables.
pub fn run(arguments: &PaperArguments) -> Result<(), Failure> {
    let root = root(arguments.tree.as_deref())?;
    let mut papers = Papers::load(&root)?;
    check_claims(&papers, arguments)?;
    let mut document = output::document("paper");
    if let (Some(paper), Some(number)) = (arguments.paper, arguments.table) {
        let table = papers.table(paper.key(), number);
        document.table(table.map_err(|error| Failure::Usage(format!("--table: {error}")))?);
        document.note("lab: means of the seeds; the lab's runs are shorter than the paper's, so compare shares and rates");
        return Ok(output::print(&document, arguments.output)?);
    }
    if let (Some(paper), Some(number)) = (arguments.paper, arguments.figure) {
        return figure(&papers, paper.key(), number, arguments);
    }
    if arguments.run && arguments.world != Some(RunWorld::Kvm) {
        run_lab(&mut papers, arguments)?;
        papers = Papers::load(&root)?;
    }
    let judged = papers.judged(|claim| wanted(arguments, claim))?;
    if arguments.run && arguments.world != Some(RunWorld::Lab) {
        document.table(Table::of(
            "To be measured on KVM",
            commands(&papers, &judged),
        ));
    }
    if arguments.world != Some(RunWorld::Kvm) {
        document.table(Table::of("", judged.iter().map(Judged::row)));
        say(&mut document, &judged);
    }
    Ok(output::print(&document, arguments.output)?)
}

/// A paper's figure: as tables with bars, and as a picture where a file is named.
fn figure(
    papers: &Papers,
    paper: &str,
    number: u32,
    arguments: &PaperArguments,
) -> Result<(), Failure> {
    let plot = papers.plot(paper, number);
    let plot = plot.map_err(|error| Failure::Usage(format!("--figure: {error:#}")))?;
    let mut document = output::document("paper");
    for table in plot.tables() {
        document.table(table);
    }
    if !plot.note.is_empty() {
        document.note(format!("here: {}", plot.note));
    }
    document.note(
        "paper: numbers that its text gives; lab: means of the seeds; n: pairs, where fewer than five; *: the lab has changed since",
    );
    if let Some(path) = &arguments.svg {
        let svg = svg(&plot).map_err(|error| Failure::Failed(anyhow::anyhow!("{error}")))?;
        fs::write(path, svg)
            .with_context(|| format!("{}: the picture cannot be written", path.display()))?;
        document.note(format!("picture: {}", path.display()));
    }
    Ok(output::print(&document, arguments.output)?)
}

/// The tree that is given, or the one around this folder.
pub(crate) fn root(tree: Option<&Path>) -> Result<PathBuf, Failure> {
    let from = match tree {
        Some(tree) => tree
            .canonicalize()
            .map_err(|error| Failure::Usage(format!("--tree {}: {error}", tree.display())))?,
        None => std::env::current_dir()?,
    };
    find_root(&from).map_err(|error| Failure::Usage(format!("{error:#}")))
}

/// Claims that are named exist, in the paper if one is named.
fn check_claims(papers: &Papers, arguments: &PaperArguments) -> Result<(), Failure> {
    let all = papers.papers.iter().flat_map(|paper| &paper.claims);
    let of_paper = all.filter(|claim| is_of_paper(arguments, claim));
    let known: BTreeSet<&str> = of_paper.map(|claim| claim.id.as_str()).collect();
    for name in &arguments.claims {
        if !known.contains(name.as_str()) {
            let known: Vec<&str> = known.into_iter().collect();
            let known = known.join(", ");
            return Err(Failure::Usage(format!(
                "--claim {name}: there is no such claim; there are {known}"
            )));
        }
    }
    Ok(())
}

fn is_of_paper(arguments: &PaperArguments, claim: &Claim) -> bool {
    arguments
        .paper
        .is_none_or(|paper| claim.paper == paper.key())
}

fn wanted(arguments: &PaperArguments, claim: &Claim) -> bool {
    let named = &arguments.claims;
    is_of_paper(arguments, claim) && (named.is_empty() || named.contains(&claim.id))
}

/// Runs the columns of the lab that the wanted claims use and that are missing or stale.
fn run_lab(papers: &mut Papers, arguments: &PaperArguments) -> Result<(), Failure> {
    let everything = arguments.paper.is_none() && arguments.claims.is_empty();
    let mut used: BTreeSet<(String, String)> = BTreeSet::new();
    for one in papers.judged(|claim| wanted(arguments, claim))? {
        if let Source::Lab(lab) = one.figure.sources.of(World::Lab) {
            for run in &lab.runs {
                let columns = lab.columns.iter().chain(&lab.over);
                used.extend(columns.map(|column| (run.clone(), column.clone())));
            }
        }
    }
    let is_used =
        |run: &str, column: &str| everything || used.contains(&(run.to_owned(), column.to_owned()));
    let due: Vec<Due> = paper_run::due(papers, is_used);
    let progress = Experiment::new(false);
    Ok(paper_run::run(
        papers,
        &due,
        arguments.workers,
        &progress.session()?,
    )?)
}

/// The counts, the reasons, what is stale.
fn say(document: &mut Document, judged: &[Judged]) {
    let counts = Counts::of(judged);
    document.note(counts.text());
    if counts.stale > 0 {
        document.note(format!(
            "*: {} figures of the lab are older than the lab, a policy, a lock or the scenario; --run --world lab renews them",
            counts.stale
        ));
    }
    for one in judged {
        let reason = one.reason();
        if one.verdict < Verdict::AgreesInSize && !reason.is_empty() {
            document.note(format!("{}, {}: {reason}", one.claim.id, one.name()));
        }
    }
}
