// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `make lint` requires of the claims, beside what reading them requires (a status or a reason in every world; five
//! pairs, or their number as a shortfall).
//!
//! What fails: a figure that cannot be found, a cited test that does not exist, a disagreement without a reason, a scenario
//! whose parameters do not say where they are from, a figure of the lab whose scenario is another one now, a measurement whose
//! command names a scenario that is no more, a figure or a cell of the heat map of data that is not there. What is only
//! printed: figures of the lab that an older lab, policy or lock made, and figures of KVM whose commit was not noted (a
//! hash of what they depend on is in no row of `benchmarks/` from before: their age cannot be computed). The lab is deterministic, but most commits change some of its sources and hardly any figure; to fail there
//! would ask for ten minutes of runs before every commit. Whoever publishes figures runs `unspin paper --run`, after which
//! nothing is stale.

use std::{collections::BTreeSet, fs};

use crate::{
    lab_rows::Age,
    papers::Papers,
    plots,
    rows::Judged,
    runs::without_origin,
    source::{PAIRS_LEAST, Source, World},
    verdict::Verdict,
};

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What must be put right.
    pub wrong: Vec<String>,
    /// What is said and let pass.
    pub notes: Vec<String>,
}

/// Where the scenarios of the papers are: each value in them says where it is from.
const SCENARIOS: &str = "scenarios/papers";

/// Checks everything.
///
/// # Errors
/// A file that cannot be read, a figure that cannot be found, of claims, of the papers' own figures or of the heat map.
pub fn check(papers: &Papers) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    plots::check(papers)?;
    papers.heat_map()?;
    let judged = papers.judged(|_| true)?;
    for one in &judged {
        findings.wrong.extend(wrong(papers, one));
    }
    findings.wrong.extend(unused(papers, &judged));
    findings.wrong.extend(origins(papers)?);
    findings.wrong.extend(gone(papers));
    for ((run, column), age) in &papers.ages {
        match age {
            Age::OtherScenario => findings.wrong.push(format!(
                "{run}, column {column}: its scenario has changed since it ran; unspin paper --run"
            )),
            Age::Fresh | Age::OtherCode | Age::Missing => {}
        }
    }
    findings.notes.extend(notes(papers, &judged));
    Ok(findings)
}

/// What is wrong with a figure.
fn wrong(papers: &Papers, one: &Judged) -> Vec<String> {
    let name = format!("{} ({})", one.claim.id, one.name());
    let mut wrong = Vec::new();
    if one.verdict == Verdict::Disagrees && one.figure.reason.trim().is_empty() {
        wrong.push(format!("{name}: disagrees, and no reason is given"));
    }
    for world in World::ALL {
        if let Source::Rule(tests) = one.figure.sources.of(world) {
            let missing = tests.iter().filter(|test| !exists(papers, test));
            wrong.extend(missing.map(|test| format!("{name}: there is no test {test}")));
        }
    }
    // The same test is cited in every world.
    wrong.dedup();
    wrong
}

/// Whether `path::function` is a function of that file of the tree.
fn exists(papers: &Papers, test: &str) -> bool {
    let Some((path, function)) = test.rsplit_once("::") else {
        return false;
    };
    let text = fs::read_to_string(papers.root.join(path)).unwrap_or_default();
    [format!("fn {function}("), format!(" {function}(void)")]
        .iter()
        .any(|head| text.contains(head))
}

/// Runs and columns that no claim and no table uses: they would be run for nobody.
fn unused(papers: &Papers, judged: &[Judged]) -> Vec<String> {
    let mut used: BTreeSet<(&str, &str)> = papers.table_columns().collect();
    for one in judged {
        if let Source::Lab(lab) = one.figure.sources.of(World::Lab) {
            for run in &lab.runs {
                let columns = lab.columns.iter().chain(&lab.over);
                used.extend(columns.map(|column| (run.as_str(), column.as_str())));
            }
        }
    }
    let all = papers.ages.keys();
    let unused = all.filter(|(run, column)| !used.contains(&(run.as_str(), column.as_str())));
    unused
        .map(|(run, column)| format!("{run}, column {column}: no claim uses it"))
        .collect()
}

/// Measurements that nobody can repeat: their command names a scenario that is no more.
fn gone(papers: &Papers) -> Vec<String> {
    let mut gone = Vec::new();
    for (name, benchmark) in papers.benchmarks.all() {
        let words = benchmark.command.split_whitespace();
        let scenarios =
            words.filter(|word| word.starts_with("scenarios/") && word.ends_with(".toml"));
        let missing = scenarios.filter(|path| !papers.root.join(path).is_file());
        gone.extend(
            missing.map(|path| {
                format!("benchmarks/{name}: there is no {path}, which its command names")
            }),
        );
    }
    gone
}

/// Claims with a figure of KVM of which nobody can say how old it is: its measurement names no commit.
fn undated<'a>(papers: &Papers, judged: &[Judged<'a>]) -> BTreeSet<&'a str> {
    let undated = judged.iter().filter(|one| {
        let Source::Benchmark(of) = one.figure.sources.of(World::Kvm) else {
            return false;
        };
        let benchmark = papers.benchmarks.get(&of.benchmark);
        benchmark.is_some_and(|benchmark| benchmark.commit.is_empty())
    });
    undated.map(|one| one.claim.id.as_str()).collect()
}

/// Values in scenarios of the papers that do not say where they are from.
fn origins(papers: &Papers) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let files: BTreeSet<&str> = papers.runs().map(|run| run.scenario.as_str()).collect();
    for file in files {
        if !file.starts_with(SCENARIOS) {
            wrong.push(format!(
                "{file}: scenarios of the papers are in {SCENARIOS}/"
            ));
            continue;
        }
        let text = fs::read_to_string(papers.root.join(file))?;
        let lines = without_origin(&text);
        wrong.extend(lines.iter().map(|line| {
            format!("{file}:{line}: say where it is from: # paper, constant, measured, fitted or assumed, and the source")
        }));
    }
    Ok(wrong)
}

fn notes(papers: &Papers, judged: &[Judged]) -> Vec<String> {
    let with = |wanted: Age| {
        let ages = papers.ages.values();
        ages.filter(|age| **age == wanted).count()
    };
    let mut notes = Vec::new();
    let all = papers.ages.len();
    for (age, what) in [
        (Age::OtherCode, "ran with an older lab, policy or lock"),
        (Age::Missing, "never ran"),
    ] {
        let some = with(age);
        if some > 0 {
            notes.push(format!(
                "{some} of the lab's {all} columns {what}: unspin paper --run"
            ));
        }
    }
    let few = judged.iter().filter_map(|one| {
        let kvm = one.worlds[World::Kvm as usize].1.as_ref()?;
        let pairs = kvm.pairs.pairs;
        (pairs < PAIRS_LEAST).then(|| format!("{} ({pairs})", one.claim.id))
    });
    let few: BTreeSet<String> = few.collect();
    let undated = undated(papers, judged);
    if !undated.is_empty() {
        let undated: Vec<&str> = undated.into_iter().collect();
        notes.push(format!(
            "figures of KVM whose commit was not noted: {}",
            undated.join(", ")
        ));
    }
    if !few.is_empty() {
        let few: Vec<String> = few.into_iter().collect();
        notes.push(format!(
            "figures of KVM of fewer than {PAIRS_LEAST} pairs, in brackets how many: {}",
            few.join(", ")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{code_hash::FOLDERS, file::Paper};

    #[test]
    fn a_measurement_of_a_scenario_that_is_gone_is_wrong_and_one_without_a_commit_is_said() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        for folder in FOLDERS {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let plant = |name: &str, head: &str| {
            let folder = root.join("benchmarks").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("benchmark.toml"), head).unwrap();
            fs::write(folder.join("rows.jsonl"), "{\"a\":1,\"x\":2.0}\n").unwrap();
        };
        let scenario = |name: &str| ["scenarios", name].join("/");
        let (there, gone_one) = (scenario("there.toml"), scenario("gone.toml"));
        plant(
            "b",
            &format!("command = \"unspin compare {there} {gone_one}\"\n"),
        );
        plant("c", "command = \"true\"\ncommit = \"abc\"\n");
        fs::create_dir_all(root.join("scenarios")).unwrap();
        fs::write(root.join(there), "").unwrap();
        let claim = |id: &str, benchmark: &str| {
            format!(
                "[[claim]]\nid = \"{id}\"\nsection = \"1\"\nclass = \"M\"\ntext = \"t\"\n[[claim.figure]]\nvalue = 2\nunit = \"ratio\"\n\
                 kvm = {{ benchmark = \"{benchmark}\", row = {{ a = 1 }}, key = \"x\", pairs = 5 }}\n"
            )
        };
        let head =
            "title = \"t\"\n[worlds]\nlab = { missing = \"no\" }\nthreads = { cannot = \"no\" }\n";
        let text = head.to_owned() + &claim("X01", "b") + &claim("X02", "c");
        let papers = Papers::new(root, vec![Paper::parse("x", &text).unwrap()]).unwrap();
        assert_eq!(
            gone(&papers),
            [format!(
                "{}: there is no {gone_one}, which its command names",
                ["benchmarks", "b"].join("/")
            )]
        );
        let judged = papers.judged(|_| true).unwrap();
        assert_eq!(undated(&papers, &judged), BTreeSet::from(["X01"]));
    }
}
