// SPDX-License-Identifier: MIT OR Apache-2.0
//! All papers of a tree, with all that was measured.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};

use crate::{
    benchmark::Benchmarks,
    claim::Figure,
    file::Paper,
    lab_rows::{Age, LabRows},
    measured::Measured,
    runs::Run,
    source::{Source, World},
    verdict::Verdict,
};

/// Where the files of claims are, from the top of the tree.
pub const FOLDER: &str = "papers";

/// The papers, in the order of their years.
const ORDER: [&str; 5] = ["friebel", "vee13", "apple", "ecs", "vee21"];

/// All papers, and what was measured.
#[derive(Debug)]
pub struct Papers {
    /// The top of the tree.
    pub root: PathBuf,
    /// The papers.
    pub papers: Vec<Paper>,
    /// Measurements.
    pub benchmarks: Benchmarks,
    /// What the lab measured.
    pub lab: LabRows,
    /// How old what the lab measured is, by run and column.
    pub ages: BTreeMap<(String, String), Age>,
}

/// The nearest folder, from this one up, that has files of claims.
///
/// # Errors
/// When there is none.
pub fn find_root(from: &Path) -> anyhow::Result<PathBuf> {
    let has = |folder: &&Path| folder.join(FOLDER).join("vee13.toml").is_file();
    let found = from.ancestors().find(has);
    found.map(Path::to_path_buf).with_context(|| {
        format!(
            "no {FOLDER}/*.toml in {} or above it: the claims are in unspin's repository; run this there, or say --tree FOLDER",
            from.display()
        )
    })
}

impl Papers {
    /// Reads all of a tree.
    ///
    /// # Errors
    /// What cannot be read or contradicts itself.
    pub fn load(root: &Path) -> anyhow::Result<Papers> {
        let mut papers = Vec::new();
        let folder = root.join(FOLDER);
        for key in ORDER {
            let name = format!("{FOLDER}/{key}.toml");
            let text = fs::read_to_string(folder.join(format!("{key}.toml")))
                .with_context(|| format!("cannot read {name}"))?;
            papers.push(Paper::parse(key, &text).context(name)?);
        }
        Papers::new(root, papers)
    }

    pub(crate) fn new(root: &Path, papers: Vec<Paper>) -> anyhow::Result<Papers> {
        let lab = LabRows::read(root)?;
        let benchmarks = Benchmarks::read(root)?;
        let mut names = BTreeSet::new();
        let runs = papers.iter().flat_map(|paper| &paper.runs);
        let mut ages = BTreeMap::new();
        for run in runs {
            ensure!(names.insert(&run.name), "two runs are called {}", run.name);
            for column in run.columns.keys() {
                let age = lab.age(root, run, column)?;
                ages.insert((run.name.clone(), column.clone()), age);
            }
        }
        let mut ids = BTreeSet::new();
        for claim in papers.iter().flat_map(|paper| &paper.claims) {
            ensure!(ids.insert(&claim.id), "two claims are called {}", claim.id);
        }
        Ok(Papers {
            root: root.to_path_buf(),
            papers,
            benchmarks,
            lab,
            ages,
        })
    }

    /// Every run, with its paper's key.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.papers.iter().flat_map(|paper| &paper.runs)
    }

    /// The run of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn run(&self, name: &str) -> anyhow::Result<&Run> {
        let found = self.runs().find(|run| run.name == name);
        found.with_context(|| format!("there is no run {name}"))
    }

    /// The figure beside a paper's in that world; none where there is none yet.
    ///
    /// # Errors
    /// A source that asks for what is not there.
    pub fn measured(&self, figure: &Figure, world: World) -> anyhow::Result<Option<Measured>> {
        match figure.sources.of(world) {
            Source::Benchmark(of) => Ok(Some(self.benchmarks.figure(of, figure.unit)?)),
            Source::Lab(of) => {
                let mut worst = Age::Fresh;
                for name in &of.runs {
                    let run = self.run(name)?;
                    for column in of.columns.iter().chain(&of.over) {
                        let Some(age) = self.ages.get(&(run.name.clone(), column.clone())) else {
                            bail!("the run {name} has no column {column}")
                        };
                        worst = older(worst, *age);
                    }
                }
                let figure = self.lab.figure(of, figure.unit)?;
                Ok(figure.map(|figure| Measured {
                    stale: stale(worst).to_owned(),
                    ..figure
                }))
            }
            Source::Rule(_) | Source::Missing { .. } | Source::Cannot { .. } => Ok(None),
        }
    }

    /// Why what the lab measured of these columns of a run is older than what it depends on; nothing when it is not.
    pub(crate) fn stale_since<'a>(
        &self,
        run: &str,
        columns: impl IntoIterator<Item = &'a str>,
    ) -> &'static str {
        let age = |column: &str| self.ages.get(&(run.to_owned(), column.to_owned())).copied();
        let ages = columns.into_iter().filter_map(age);
        stale(ages.fold(Age::Fresh, older))
    }

    /// What a world says of a figure, and the figure.
    ///
    /// # Errors
    /// As [`Papers::measured`].
    pub fn verdict(
        &self,
        figure: &Figure,
        world: World,
    ) -> anyhow::Result<(Verdict, Option<Measured>)> {
        let measured = self.measured(figure, world)?;
        let verdict = match (&measured, figure.sources.of(world)) {
            (Some(measured), _) => Verdict::of(figure, measured),
            (None, Source::Rule(_)) => Verdict::Tested,
            (None, Source::Cannot { .. }) => Verdict::CannotBeHad,
            (None, _) => Verdict::NotMeasured,
        };
        Ok((verdict, measured))
    }
}

/// The one that is more reason to run it again.
fn older(a: Age, b: Age) -> Age {
    let rank = |age| match age {
        Age::Fresh => 0,
        Age::OtherCode => 1,
        Age::OtherScenario => 2,
        Age::Missing => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}

/// What is said of a figure of that age; nothing of a fresh one.
fn stale(age: Age) -> &'static str {
    match age {
        Age::Fresh => "",
        Age::OtherCode => "the lab, a policy or a lock has changed since",
        Age::OtherScenario | Age::Missing => "its scenario has changed since",
    }
}
