// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin paper`: what it prints of this tree's claims, and what it refuses.

#[path = "../common/mod.rs"]
mod common;

use std::{path::Path, process::Command};

use common::{Ended, UNSPIN, ended, unspin};
use serde_json::Value;

/// The top of the tree, from where the claims are found.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn paper(arguments: &[&str]) -> Ended {
    let mut command = Command::new(UNSPIN);
    command.arg("paper").args(arguments);
    ended(command.current_dir(Path::new(TREE).join("crates/cli")))
}

fn rows(of: &Ended) -> Vec<Value> {
    assert_eq!(of.status, 0, "{of:#?}");
    let document: Value = serde_json::from_str(&of.out).expect("JSON");
    document["rows"].as_array().expect("rows").clone()
}

#[test]
fn every_claim_has_a_verdict_and_failures_come_first() {
    let rows = rows(&paper(&["--json"]));
    assert!(rows.len() > 150, "{}", rows.len());
    let order = [
        "disagrees",
        "not resolved",
        "not measured",
        "agrees in kind",
        "agrees in size",
        "rule, tested",
        "cannot be had",
    ];
    let places = rows.iter().map(|row| {
        let verdict = row["verdict"].as_str().expect("a verdict");
        order
            .iter()
            .position(|known| *known == verdict)
            .expect(verdict)
    });
    assert!(places.is_sorted());
    for row in rows.iter().filter(|row| row["verdict"] == "disagrees") {
        assert_ne!(row["reason"], "", "{row}");
    }
}

#[test]
fn one_claim_and_one_paper() {
    let of_claim = rows(&paper(&["--claim", "O12", "--json"]));
    assert!(!of_claim.is_empty() && of_claim.iter().all(|row| row["claim"] == "O12"));
    let first = &of_claim[0];
    assert_eq!(first["paper_key"], "vee13");
    let of_paper = rows(&paper(&["apple", "--json"]));
    assert!(of_paper.iter().all(|row| row["paper_key"] == "apple"));
}

#[test]
fn tables_in_the_papers_own_form() {
    let rows = rows(&paper(&["vee13", "--table", "1", "--json"]));
    let of_paper: Vec<_> = rows.iter().filter(|row| row["source"] == "paper").collect();
    assert_eq!(of_paper.len(), 4);
    assert_eq!(of_paper[1]["next_waiter_percent"], 88.5);
    let text = paper(&["friebel", "--table", "3"]).out;
    for piece in ["wall clock [s]", "2825.1", "99.3"] {
        assert!(text.contains(piece), "{text}");
    }
    paper(&["apple", "--table", "1"]).refused(2, &["apple has no table"]);
    paper(&["friebel", "--table", "9"]).refused(2, &["no table 9", "1, 2, 3"]);
}

#[test]
fn figures_in_the_papers_own_form() {
    let rows = rows(&paper(&["vee13", "--figure", "5", "--json"]));
    let of = |source: &str| {
        let is_it = |row: &&Value| {
            row["source"] == source
                && row["group"] == "(a) hackbench, 2 VMs"
                && row["series"] == "preemptable-lock"
        };
        rows.iter().find(is_it).expect(source)["value"].as_f64()
    };
    assert_eq!(of("paper"), Some(3.89));
    assert!(of("lab").is_some() && of("kvm").is_some());
    assert!(
        rows.iter()
            .all(|row| row["of_largest"].as_f64() <= Some(1.0))
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("figure.svg");
    let name = file.to_str().expect("a name");
    let text = paper(&["apple", "--figure", "1", "--svg", name]).out;
    for piece in ["figure 1", "16,384", "streamcluster", "█"] {
        assert!(text.contains(piece), "{text}");
    }
    let svg = std::fs::read_to_string(&file).expect("a picture");
    assert!(
        svg.starts_with("<svg ") && svg.contains("2 streamcluster"),
        "{svg}"
    );
}

#[test]
fn figures_without_data_are_refused_with_the_reason() {
    paper(&["apple", "--figure", "6"]).refused(2, &["no trace of windows", "there are 1, 3, 4, 5"]);
    paper(&["friebel", "--figure", "5"]).refused(2, &["illustration", "no figure of friebel"]);
    paper(&["ecs", "--figure", "99"]).refused(2, &["no figure 99", "1, 3, 5, 6, 7"]);
    paper(&["--figure", "1"]).refused(2, &["PAPER"]);
    paper(&["vee13", "--svg", "x"]).refused(2, &["--figure"]);
    paper(&["vee13", "--figure", "5", "--table", "1"]).refused(2, &["--table"]);
    paper(&["vee13", "--figure", "5", "--svg", "/nowhere/x.svg"]).refused(1, &["/nowhere/x.svg"]);
}

#[test]
fn commands_for_kvm_are_printed_and_not_run() {
    let rows = rows(&paper(&[
        "--run", "--world", "kvm", "--claim", "O12", "--json",
    ]));
    assert_eq!(rows.len(), 1);
    let command = rows[0]["command"].as_str().expect("a command");
    assert!(command.starts_with("unspin testbed run"), "{command}");
}

#[test]
fn what_is_not_there_is_said() {
    paper(&["--claim", "O99"]).refused(2, &["O99", "O12"]);
    paper(&["apple", "--claim", "O12"]).refused(2, &["O12", "A01"]);
    paper(&["--table", "1"]).refused(2, &["PAPER"]);
    paper(&["--world", "lab"]).refused(2, &["--run"]);
    unspin(&["paper", "--tree", "/"]).refused(2, &["papers/*.toml", "--tree"]);
    unspin(&["paper", "--tree", "/nowhere"]).refused(2, &["/nowhere"]);
}
