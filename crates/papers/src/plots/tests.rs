// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a tree made by hand.

use std::{fs, path::Path};

use super::*;
use crate::{code_hash::FOLDERS, file::Paper};

const PAPER: &str = r#"
title = "t"
[worlds]
kvm = { missing = "nobody did" }
threads = { cannot = "no VMs" }

[[run]]
name = "x-a-2"
scenario = "s.toml"
columns = { stock = [], better = ["vm.lock=mcs"] }

[[claim]]
id = "X01"
section = "1"
class = "M"
text = "t"
[[claim.figure]]
value = 50
unit = "change_percent"
lab = { run = "x-a-2", column = "better", measure = "m", over = "stock" }

[[plot]]
number = 1
title = "one"
[[plot.panel]]
label = "to stock"
unit = "ratio"
measure = "m"
over = "stock"
kvm = { key = "x" }
[[plot.group]]
label = "a"
run = "x-a-2"
[[plot.series]]
label = "stock"
column = "stock"
[[plot.series]]
label = "better"
column = "better"
kvm = { benchmark = "b", row = { lock = "mcs" } }

[[plot]]
number = 2
title = "two"
cannot = "an illustration"
"#;

/// The tree, with rows of the lab and a measurement on KVM.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    for folder in FOLDERS {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let scenario = "duration = \"1ms\"\n[host]\ncpus = 2\n[[vm]]\ncount = 2\nvcpus = 4\nlock = \"ticket\"\nhold = \"1us\"\n";
    fs::write(root.join("s.toml"), scenario).unwrap();
    let benchmark = |name: &str, rows: &str| {
        let folder = root.join("benchmarks").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("benchmark.toml"), "command = \"true\"\n").unwrap();
        fs::write(folder.join("rows.jsonl"), rows).unwrap();
    };
    let row = |column: &str, values: &str| {
        format!(
            "{{\"run\":\"x-a-2\",\"column\":\"{column}\",\"group\":0,\"settings_sha256\":\"0\",\"code_hash\":\"0\",\
             \"seeds\":[1,2,3,4,5],\"measures\":{{\"m\":{values}}}}}\n"
        )
    };
    benchmark(
        "papers-lab",
        &(row("better", "[2,2,2,2,2]") + &row("stock", "[1,1,1,1,1]")),
    );
    benchmark(
        "b",
        "{\"lock\":\"mcs\",\"x\":\"3.0 (2.5 to 4)\",\"pairs\":2}\n",
    );
    tree
}

fn papers(root: &Path, text: &str) -> anyhow::Result<Papers> {
    Papers::new(root, vec![Paper::parse("x", text)?])
}

#[test]
fn paper_lab_and_kvm_are_beside_one_another() {
    let tree = tree();
    let papers = papers(tree.path(), PAPER).unwrap();
    let plot = papers.plot("x", 1).unwrap();
    let panel = &plot.panels[0];
    let told: Vec<_> = panel
        .marks
        .iter()
        .map(|mark| (mark.series, mark.source, mark.value))
        .collect();
    // Of stock the paper says nothing, and nothing says where KVM's is.
    assert_eq!(
        told,
        [
            (0, MarkSource::Lab, Some(1.0)),
            (1, MarkSource::Paper, Some(1.5)),
            (1, MarkSource::Lab, Some(2.0)),
            (1, MarkSource::Kvm, Some(3.0)),
        ]
    );
    let rows = panel.rows();
    assert_eq!(rows[3].text, "3.00 (2.50 to 4.00) n=2");
    assert_eq!(rows[1].text, "1.50");
    // The scenario's hash is not that of the rows.
    assert!(rows[2].is_stale && rows[2].text.ends_with('*'));
    assert_eq!(
        (rows[3].of_largest, rows[1].of_largest),
        (Some(1.0), Some(0.5))
    );
    assert_eq!(plot.tables().len(), 1);
}

#[test]
fn what_cannot_be_drawn_is_refused_with_the_reason() {
    let tree = tree();
    let papers = papers(tree.path(), PAPER).unwrap();
    let error = |number| format!("{:#}", papers.plot("x", number).expect_err("none"));
    assert!(
        error(2).contains("an illustration; there are 1"),
        "{}",
        error(2)
    );
    assert!(
        error(3).contains("no figure 3; there are 1"),
        "{}",
        error(3)
    );
    assert_eq!(
        papers.plot_refused("x", 2),
        Some(("two", "an illustration"))
    );
    assert_eq!(papers.plot_numbers("x"), [(1, true), (2, false)]);
    assert!(papers.plot("y", 1).is_err());
}

#[test]
fn a_figure_of_what_is_not_there_breaks_a_rule() {
    let tree = tree();
    for (from, to, why) in [
        (
            "column = \"better\"\nkvm",
            "column = \"best\"\nkvm",
            "no run has a column best",
        ),
        (
            "label = \"a\"\nrun = \"x-a-2\"",
            "label = \"a\"\nrun = \"x-b\"",
            "no run x-b",
        ),
        (
            "measure = \"m\"\nover = \"stock\"\nkvm",
            "measure = \"n\"\nover = \"stock\"\nkvm",
            "no measure",
        ),
        ("lock = \"mcs\" }", "lock = \"none\" }", "0 rows have"),
        (
            "kvm = { benchmark = \"b\", row = { lock = \"mcs\" } }",
            "kvm = { benchmark = \"b\" }",
            "say which row",
        ),
        ("number = 2", "number = 1", "two figures 1"),
    ] {
        assert!(PAPER.contains(from), "{from}");
        let papers = papers(tree.path(), &PAPER.replace(from, to)).unwrap();
        let error = check(&papers).expect_err(why);
        assert!(format!("{error:#}").contains(why), "{error:#}");
    }
    for (from, to, why) in [
        ("cannot = \"an illustration\"", "cannot = \" \"", "say why"),
        (
            "cannot = \"an illustration\"",
            "note = \"n\"",
            "either cannot",
        ),
        ("unit = \"ratio\"\nmeasure", "measure", "needs a unit"),
    ] {
        let error = papers(tree.path(), &PAPER.replace(from, to)).expect_err(why);
        assert!(format!("{error:#}").contains(why), "{error:#}");
    }
}

#[test]
fn bounds_of_the_paper_are_words() {
    let mark = |value, low, high| Mark {
        group: 0,
        series: 0,
        source: MarkSource::Paper,
        value,
        low,
        high,
        count: None,
        is_stale: false,
    };
    assert_eq!(
        mark(None, Some(1.0), None).text(Unit::Ratio),
        "at least 1.00"
    );
    assert_eq!(
        mark(None, None, Some(50.0)).text(Unit::Percent),
        "at most 50.0 %"
    );
    assert_eq!(
        mark(None, Some(1.0), Some(2.0)).text(Unit::Ratio),
        "1.00 to 2.00"
    );
    assert_eq!(
        mark(Some(1.0), Some(1.0), Some(1.0)).text(Unit::Ratio),
        "1.00"
    );
}
