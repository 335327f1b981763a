// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the lab's part of the papers' claims: every column of every run that never ran, or whose scenario or code has
//! changed since. A finished column is in the file at once, so that whatever ends it, the next one goes on there.

mod measures;
mod stalls;

use std::collections::{BTreeMap, BTreeSet};

use unspin_lab::pool;
use unspin_papers::{
    Papers,
    lab_rows::{Age, LabRow},
};
use unspin_scenario::Scenario;

pub use measures::{Measures, measure};
pub use stalls::STALL_SPINS;

use crate::{Error, Session, Work};

/// What is to be run: a column of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The run.
    pub run: String,
    /// The column.
    pub column: String,
    /// Why.
    pub age: Age,
}

/// A seed of a column.
struct Job {
    due: usize,
    scenario: Scenario,
    outcomes: bool,
}

/// Columns that never ran or are stale, of the runs that are wanted.
pub fn due(papers: &Papers, wanted: impl Fn(&str, &str) -> bool) -> Vec<Due> {
    let ages = papers.ages.iter();
    let due = ages.filter(|((run, column), age)| **age != Age::Fresh && wanted(run, column));
    due.map(|((run, column), age)| Due {
        run: run.clone(),
        column: column.clone(),
        age: *age,
    })
    .collect()
}

/// Runs them on so many workers (`None`: one for each CPU), and puts their rows into the file.
///
/// # Errors
/// A scenario that the lab cannot run, a file that cannot be written, an interrupt.
pub fn run(
    papers: &mut Papers,
    due: &[Due],
    workers: Option<u32>,
    session: &Session,
) -> Result<(), Error> {
    let there: BTreeSet<(String, String)> = papers.ages.keys().cloned().collect();
    papers
        .lab
        .keep(|run, column| there.contains(&(run.to_owned(), column.to_owned())))?;
    let jobs = jobs(papers, due)?;
    let mut finished: BTreeMap<usize, BTreeMap<u64, Vec<Measures>>> = BTreeMap::new();
    let mut done = 0;
    session
        .progress
        .begin("running the papers' scenarios", Work::Steps(jobs.len()));
    let workers = pool::workers(workers);
    let work = |job: &Job| measure(&job.scenario, job.outcomes);
    let ended = pool::each(&jobs, workers, &session.interrupt, work, |place, groups| {
        let job = &jobs[place];
        let of = &due[job.due];
        let seeds = finished.entry(job.due).or_default();
        seeds.insert(job.scenario.seed, groups);
        if seeds.len() == papers.run(&of.run)?.seeds as usize {
            let rows = rows(papers, of, seeds)?;
            papers.lab.put(rows)?;
        }
        done += 1;
        session.progress.say(&format!("{}, {}", of.run, of.column));
        session.progress.done(done);
        Ok(())
    });
    session.progress.end();
    ended
}

/// Every seed of every column, in order, so that columns are finished one after another.
fn jobs(papers: &Papers, due: &[Due]) -> Result<Vec<Job>, Error> {
    let mut jobs = Vec::new();
    for (place, of) in due.iter().enumerate() {
        let run = papers.run(&of.run)?;
        let scenario = run.scenario(&papers.root, &of.column)?;
        for seed in 0..u64::from(run.seeds) {
            let mut scenario = scenario.clone();
            scenario.seed += seed;
            jobs.push(Job {
                due: place,
                scenario,
                outcomes: run.outcomes,
            });
        }
    }
    Ok(jobs)
}

/// The rows of a finished column: one for each group, with the seeds in order.
fn rows(
    papers: &Papers,
    of: &Due,
    seeds: &BTreeMap<u64, Vec<Measures>>,
) -> Result<Vec<LabRow>, Error> {
    let run = papers.run(&of.run)?;
    let settings_sha256 = run.settings_hash(&papers.root, &of.column)?;
    let groups = 0..run.scenario(&papers.root, &of.column)?.vms.len();
    let rows = groups.map(|group| {
        let mut measures: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        for groups in seeds.values() {
            for (name, value) in &groups[group] {
                let value = value.map(rounded);
                measures.entry(name.clone()).or_default().push(value);
            }
        }
        LabRow {
            run: of.run.clone(),
            column: of.column.clone(),
            group,
            settings_sha256: settings_sha256.clone(),
            code_hash: papers.lab.code_hash().to_owned(),
            seeds: seeds.keys().copied().collect(),
            measures,
        }
    });
    Ok(rows.collect())
}

/// Six digits: more than any interval resolves, and lines stay short.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use unspin_papers::CODE_FOLDERS;

    use super::*;

    /// A tree with one paper of one run, and what else is read of a tree.
    fn tree(work: &str) -> tempfile::TempDir {
        let tree = tempfile::tempdir().expect("a folder");
        let at = |name: &str| tree.path().join(name);
        for folder in CODE_FOLDERS.iter().chain(&["papers", "benchmarks"]) {
            fs::create_dir_all(at(folder)).expect("folders");
        }
        let none = "title = \"t\"\nclaim = []\n";
        for key in ["friebel", "apple", "ecs", "vee21"] {
            fs::write(at(&format!("papers/{key}.toml")), none).expect("a file");
        }
        let paper = "title = \"t\"\n[worlds]\nkvm = { cannot = \"a test\" }\nthreads = { cannot = \"a test\" }\n\
            [[run]]\nname = \"r\"\nscenario = \"s.toml\"\ncolumns = { a = [], b = [\"vm.lock=mcs\"] }\n\
            [[claim]]\nid = \"X01\"\nsection = \"1\"\nclass = \"M\"\ntext = \"x\"\n[[claim.figure]]\nvalue = 1\nunit = \"ratio\"\n\
            lab = { run = \"r\", column = \"b\", over = \"a\", measure = \"operations_per_second\" }\n";
        fs::write(at("papers/vee13.toml"), paper).expect("a file");
        let scenario = format!(
            "duration = \"4ms\"\nseed = 3\n[host]\ncpus = 2\n[[vm]]\nvcpus = 2\nlock = \"ticket\"\nuser_work = {{ exponential = \"{work}\" }}\nhold = \"1us\"\n"
        );
        fs::write(at("s.toml"), scenario).expect("a file");
        tree
    }

    fn all(_: &str, _: &str) -> bool {
        true
    }

    #[test]
    fn what_ran_is_kept_and_not_run_again_until_it_is_stale() {
        let tree = tree("3us");
        let mut papers = Papers::load(tree.path()).expect("claims");
        let first = due(&papers, all);
        assert_eq!(first.len(), 2);
        assert!(first.iter().all(|due| due.age == Age::Missing));
        // One column alone: the other is still due afterwards.
        run(&mut papers, &first[..1], None, &Session::quiet()).expect("it runs");
        let mut papers = Papers::load(tree.path()).expect("claims");
        let second = due(&papers, all);
        assert_eq!(second, first[1..]);
        run(&mut papers, &second, Some(1), &Session::quiet()).expect("it runs");
        let papers = Papers::load(tree.path()).expect("claims");
        assert_eq!(due(&papers, all), []);
        let judged = papers.judged(|_| true).expect("figures");
        let lab = judged[0].worlds[0].1.as_ref().expect("a figure");
        assert!(lab.pairs.pairs == 5 && lab.interval.is_some() && lab.stale.is_empty());
        // Another policy, then another scenario.
        fs::write(tree.path().join("policy").join("a.h"), "int a;\n").expect("a file");
        let papers = Papers::load(tree.path()).expect("claims");
        assert!(
            due(&papers, all)
                .iter()
                .all(|due| due.age == Age::OtherCode)
        );
        let text = fs::read_to_string(tree.path().join("s.toml")).expect("a file");
        fs::write(tree.path().join("s.toml"), text.replace("3us", "4us")).expect("a file");
        let papers = Papers::load(tree.path()).expect("claims");
        let third = due(&papers, all);
        assert!(third.iter().all(|due| due.age == Age::OtherScenario));
        assert_eq!(due(&papers, |_, column| column == "b").len(), 1);
    }

    #[test]
    fn any_number_of_workers_gives_the_same_file() {
        let files = [1, 3].map(|workers| {
            let tree = tree("3us");
            let mut papers = Papers::load(tree.path()).expect("claims");
            let due = due(&papers, all);
            run(&mut papers, &due, Some(workers), &Session::quiet()).expect("it runs");
            fs::read_to_string(tree.path().join(unspin_papers::lab_rows::FILE)).expect("rows")
        });
        assert_eq!(files[0], files[1]);
    }

    #[test]
    fn an_interrupt_keeps_what_was_finished() {
        let tree = tree("3us");
        let mut papers = Papers::load(tree.path()).expect("claims");
        let due = due(&papers, all);
        let session = Session::quiet();
        session
            .interrupt
            .store(true, std::sync::atomic::Ordering::Relaxed);
        let ended = run(&mut papers, &due, Some(1), &session);
        assert!(matches!(ended, Err(Error::Interrupted)));
    }
}
