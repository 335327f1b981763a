// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin report --papers` of this tree.

use std::fs;

use serde_json::Value;

use crate::common::unspin;

/// The top of the tree.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_page_is_written_and_its_measurements_are_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = |name: &str| {
        let file = folder.path().join(name);
        let path = file.to_str().expect("a name");
        let ended = unspin(&[
            "report", "--papers", "--tree", TREE, "--output", path, "--json",
        ]);
        assert_eq!(ended.status, 0, "{ended:#?}");
        let text = fs::read_to_string(&file).expect("a page");
        (
            text,
            serde_json::from_str::<Value>(&ended.out).expect("JSON"),
        )
    };
    let ((one, document), (two, _)) = (page("one.html"), page("two.html"));
    assert!(one == two, "two pages of one tree");
    assert!(one.contains("Five papers, one model"));
    let rows = document["rows"].as_array().expect("rows");
    assert!(rows.len() > 500, "{}", rows.len());
    for row in rows {
        assert_eq!(row["table"], "remedy");
        assert!(
            row["throughput_ratio_to_baseline"].as_f64() > Some(0.0),
            "{row}"
        );
        for key in ["benchmark", "date", "remedy", "load", "baseline"] {
            assert_ne!(row[key], "", "{key}: {row}");
        }
    }
    let parts = [
        "lab-papers",
        "lab-policies",
        "kvm-micro",
        "kvm-linux",
        "kvm-locks",
    ];
    for part in parts {
        assert!(rows.iter().any(|row| row["part"] == part), "{part}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    unspin(&["report", "--papers", "/nowhere"]).refused(2, &["--papers"]);
    unspin(&["report", "--papers", "--redact"]).refused(2, &["--redact"]);
    unspin(&["report"]).refused(2, &["RECORDING"]);
    unspin(&["report", "/nowhere", "--tree", "/"]).refused(2, &["--tree"]);
    unspin(&["report", "--papers", "--tree", "/"]).refused(2, &["papers/*.toml"]);
    unspin(&[
        "report",
        "--papers",
        "--tree",
        TREE,
        "--out",
        "/nowhere/x.html",
    ])
    .refused(1, &["/nowhere/x.html"]);
}
