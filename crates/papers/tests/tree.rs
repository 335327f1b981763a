// SPDX-License-Identifier: MIT OR Apache-2.0
//! The claims of this tree: whole, their pages current, their scenarios on the papers' machines.
#![allow(missing_docs)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use unspin_papers::{
    Papers,
    check::check,
    page::{COUNTS_PAGE, Counts, PAGE, page, with_counts},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the top of the tree")
}

fn papers() -> Papers {
    Papers::load(&root()).expect("the claims can be read")
}

#[test]
fn claims_break_no_rule() {
    let findings = check(&papers()).expect("they can be checked");
    assert_eq!(findings.wrong, [] as [&str; 0]);
}

/// The first list of claims had these; rows may be added, none goes.
#[test]
fn no_claim_is_lost() {
    let papers = papers();
    let claims = papers.papers.iter().flat_map(|paper| &paper.claims);
    let there: BTreeSet<&str> = claims.map(|claim| claim.id.as_str()).collect();
    for (letter, last) in [("F", 11), ("O", 20), ("A", 12), ("E", 15), ("V", 16)] {
        for number in 1..=last {
            let id = format!("{letter}{number:02}");
            assert!(there.contains(id.as_str()), "{id}");
        }
    }
}

#[test]
fn pages_say_what_was_measured() {
    let papers = papers();
    let read = |name: &str| fs::read_to_string(root().join(name)).expect(name);
    let is_current = read(PAGE) == page(&papers).expect("a page");
    assert!(is_current, "{PAGE}: run make docs");
    let counts = Counts::of(&papers.judged(|_| true).expect("figures"));
    let readme = read(COUNTS_PAGE);
    let current = with_counts(&readme, &counts).expect("a place for the counts");
    assert!(readme == current, "{COUNTS_PAGE}: run make docs");
}

/// Claims O20, A12 and V16: CPUs of the host, vCPUs of each VM, and the host's scheduler.
#[test]
fn scenarios_are_the_papers_machines() {
    let machines = BTreeMap::from([
        ("vee13", (8, 8, "cfs-3.5")),
        ("apple", (16, 16, "cfs-3.19")),
        ("vee21", (8, 8, "cfs-5.6")),
    ]);
    let papers = papers();
    let mut seen = BTreeSet::new();
    for paper in &papers.papers {
        let Some(&(cpus, vcpus, scheduler)) = machines.get(paper.key.as_str()) else {
            continue;
        };
        for run in &paper.runs {
            seen.insert(&paper.key);
            for column in run.columns.keys() {
                let scenario = run.scenario(&papers.root, column).expect("a scenario");
                assert_eq!(scenario.host.cpus, Some(cpus), "{}", run.name);
                assert!(
                    scenario.vms.iter().all(|vm| vm.vcpus == vcpus),
                    "{}",
                    run.name
                );
                let lab = scenario.lab.expect("a host of the lab");
                let of = lab.scheduler.expect("a scheduler");
                assert_eq!(of.split('+').next(), Some(scheduler), "{}", run.name);
            }
        }
    }
    assert_eq!(seen.len(), machines.len());
}
