// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of samples that were made up.

use super::*;
use crate::{
    arguments::{Arguments, Command},
    commands::vm::{args::VmVerb, linux::policies::args::PoliciesLoad},
};
use clap::Parser;
use serde_json::Value;
use unspin_linux_guest::{Counts, Features, Run};

const CELL: Cell = Cell {
    load: PoliciesLoad::Hackbench,
    features: Features::VEE21,
    vms: 2,
    vcpus: 4,
};

fn arguments(words: &str) -> LinuxPoliciesArguments {
    let line = format!("unspin vm linux-policies {words}");
    match Arguments::try_parse_from(line.split_whitespace()).map(|found| found.command) {
        Ok(Command::Vm(VmVerb::LinuxPolicies(arguments))) => arguments,
        other => panic!("{other:?}"),
    }
}

/// Each column's time of a run by pair, the same in each of so many VMs.
fn measured(columns: &[(Column, usize, [u64; 2])]) -> Measured {
    let mut measured = Measured {
        cpus: 2,
        ..Measured::default()
    };
    for (column, vms, times) in columns {
        for (pair, &load_ns) in times.iter().enumerate() {
            let counts = Counts::default();
            let sample = Sample {
                runs: vec![vec![Run { load_ns, counts }]; *vms],
                ple_exits_per_s: Some(1_000.0),
            };
            measured.samples.insert((*column, pair), sample);
        }
    }
    measured
}

const IDEAL: (Column, usize, [u64; 2]) = (Column::Ideal, 1, [100_000_000; 2]);
const STOCK: (Column, usize, [u64; 2]) = (Column::Stock, 2, [400_000_000, 400_000_000]);
const AGAIN: (Column, usize, [u64; 2]) = (Column::StockAgain, 2, [400_000_000, 410_000_000]);
const NONE: (Column, usize, [u64; 2]) = (Column::RefuseYields, 2, [800_000_000; 2]);

#[test]
fn two_vms_that_share_the_cpus_without_loss_are_ideal() {
    let fair = (Column::Policy(0), 2, [200_000_000; 2]);
    let measured = measured(&[IDEAL, STOCK, AGAIN, NONE, fair]);
    let rows = rows(&CELL, &arguments("--policy loan-cpl"), &measured).expect("a row");
    let row = &rows[0];
    assert_eq!((row.shape.as_str(), row.overcommit), ("2x4", Some(4.0)));
    assert_eq!(row.gap_closed, Some(1.0));
    assert!((row.stock_ratio_to_ideal.expect("known") - 0.5).abs() < 1e-9);
    assert!((row.throughput_ratio_to_stock.expect("known") - 2.0).abs() < 1e-9);
    assert!((row.none_ratio_to_stock.expect("known") - 0.5).abs() < 1e-9);
    assert_eq!(row.policy_run_ns, Some(200e6));
    assert_eq!(row.stock_ple_exits_per_run, Some(200.0));
    assert_eq!(row.verdict.as_deref(), Some("higher"));
    assert_eq!(row.harm, Some("no harm"));
    assert_eq!(row.null_verdict.as_deref(), Some("includes 1"));
}

#[test]
fn policies_share_what_they_are_compared_with_and_every_sample_is_there() {
    let columns = [
        IDEAL,
        STOCK,
        AGAIN,
        NONE,
        (Column::Policy(0), 2, [300_000_000; 2]),
        (Column::Policy(1), 2, [500_000_000; 2]),
    ];
    let arguments = arguments("--policy loan-cpl --policy gang");
    let measured = measured(&columns);
    let rows = rows(&CELL, &arguments, &measured).expect("rows");
    assert_eq!(rows[0].stock_run_ns, rows[1].stock_run_ns);
    assert_eq!(rows[1].verdict.as_deref(), Some("lower"));
    assert_eq!(rows[1].harm, Some("harm"));
    let samples = sample_rows(&CELL, &arguments, &measured);
    assert_eq!(samples.len(), 6 * 2);
    assert_eq!((samples[11].column.as_str(), samples[11].pair), ("gang", 1));
}

#[test]
fn a_policy_under_which_a_load_stands_still_has_no_figures_and_does_harm() {
    let once = (Column::Policy(0), 2, [200_000_000; 2]);
    let other = (Column::Policy(1), 2, [300_000_000; 2]);
    let mut measured = measured(&[IDEAL, STOCK, AGAIN, once, other]);
    measured.samples.remove(&(Column::Policy(0), 1));
    measured.stood_still = [Column::RefuseYields, Column::Policy(0)].into();
    let arguments = arguments("--policy lag-credit --policy gang");
    let rows = rows(&CELL, &arguments, &measured).expect("rows");
    assert_eq!((rows[0].policy_run_ns, rows[0].gap_closed), (None, None));
    assert_eq!(rows[0].throughput_ratio_to_stock, None);
    assert_eq!(rows[0].verdict.as_deref(), Some("lower"));
    assert_eq!(rows[0].harm, Some("harm"));
    let why = rows[0].not_measured.as_deref();
    assert_eq!(why, Some("a load stood still under lag-credit"));
    assert_eq!(rows[0].none_ratio_to_stock, None);
    assert_eq!(rows[1].harm, Some("no harm"));
    assert_eq!(rows[1].not_measured, None);
}

#[test]
fn columns_are_the_fields_and_a_cell_without_figures_says_why() {
    let row = Row::not_measured(&CELL, &arguments(""), "linux0 has not done");
    let sample = SampleRow {
        load: "hackbench",
        features: String::new(),
        shape: String::new(),
        column: String::new(),
        pair: 0,
        runs_per_s: 1.0,
        run_ns: 1.0,
        ple_exits_per_run: None,
    };
    let fields = |row: Value| {
        row.as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    let keys = |columns: &[Shown]| {
        let mut keys: Vec<String> = columns.iter().map(|column| column.key.to_owned()).collect();
        keys.sort();
        keys
    };
    let sorted = |mut fields: Vec<String>| {
        fields.sort();
        fields
    };
    assert_eq!(
        keys(ROW),
        sorted(fields(serde_json::to_value(&row).expect("JSON")))
    );
    assert_eq!(
        keys(SAMPLE),
        sorted(fields(serde_json::to_value(&sample).expect("JSON")))
    );
    let mut document = Document::new("vm linux-policies", "here");
    add(&mut document, &[row], &[]);
    let mut out = Vec::new();
    document.write_text(&mut out).expect("a Vec takes it");
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(text.contains("linux0 has not done"), "{text}");
}
