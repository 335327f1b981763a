// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare` in the testbed: VMs that keep running while our scheduler comes, changes its policy and goes.

mod common;

use std::process::Command;

use common::{ended, repository};
use serde_json::Value;

fn number(row: &Value, key: &str) -> f64 {
    row[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {key} in {row}"))
}

/// One boot, one set of VMs, two policies: the loan drains the convoy that acting at exits alone does not, and the stock of
/// before and after is the same.
#[test]
fn policies_are_compared_while_their_vms_run() {
    let line = "testbed run --deterministic -- unspin compare scenarios/compare/ticket.toml --shape 2x4 --pairs 2 --sample 60ms --discard 120ms --observe on --policy loan,kernel-exit \
                --policy kernel-exit --json";
    let mut command = Command::new(common::UNSPIN);
    command
        .args(line.split_whitespace())
        .current_dir(repository());
    let ended = ended(&mut command);
    assert_eq!(ended.status, 0, "{}\n{}", ended.out, ended.err);
    let object: Value = serde_json::from_str(&ended.out).expect("JSON");
    let of = |table: &str| -> Vec<&Value> {
        let rows = object["rows"].as_array().expect("rows").iter();
        rows.filter(|row| row["table"] == table).collect()
    };

    let rows = of("compare");
    let policies: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["policy"].as_str())
        .collect();
    assert_eq!(policies, ["loan,kernel-exit", "kernel-exit"]);
    let [loan, exit] = rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!(
        (&loan["shape"], &loan["lock"]),
        (&"2x4".into(), &"ticket".into())
    );
    assert_eq!(
        (number(loan, "overcommit"), number(loan, "ple_window")),
        (4.0, 200.0)
    );
    // What both are compared with is the same.
    for key in [
        "ideal_per_s",
        "stock_per_s",
        "refuse_yields_per_s",
        "stock_ratio_to_stock",
    ] {
        assert_eq!(number(loan, key), number(exit, key), "{key}");
        assert!(number(loan, key) > 0.0, "{key}");
    }
    assert!(number(loan, "gap_closed") > 0.7, "{loan}");
    assert!(number(loan, "throughput_ratio_to_stock") > number(exit, "throughput_ratio_to_stock"));
    let (low, high) = (
        "throughput_ratio_to_stock_low",
        "throughput_ratio_to_stock_high",
    );
    assert!(number(loan, low) < number(loan, high));
    assert!(number(loan, "stock_spin_time_percent") > 0.0, "{loan}");

    // Two VMs under stock, none and two policies; six columns of two samples.
    let vms = of("vm");
    assert_eq!(vms.len(), 2 * 4);
    let shares = |column: &str| -> Vec<f64> {
        let of = vms.iter().filter(|row| row["column"] == column);
        of.map(|row| number(row, "cpu_share_percent")).collect()
    };
    // 120 ms of eight vCPUs: how fair the kernel's own scheduler is in so short a time is not what is tested.
    for column in ["stock", "refuse-yields", "loan,kernel-exit", "kernel-exit"] {
        let sum: f64 = shares(column).iter().sum();
        assert!((sum - 100.0).abs() < 0.1, "{column}: {vms:?}");
    }
    for column in ["loan,kernel-exit", "kernel-exit"] {
        let fair = |share: &f64| (40.0..60.0).contains(share);
        assert!(shares(column).iter().all(fair), "{column}: {vms:?}");
    }
    let samples = of("sample");
    assert_eq!(samples.len(), 2 * 6);
    let mean = |column: &str| {
        let of = samples.iter().filter(|row| row["column"] == column);
        of.map(|row| number(row, "operations_per_s")).sum::<f64>() / 2.0
    };
    assert!((mean("ideal") - number(loan, "ideal_per_s")).abs() < 1e-6);
    assert!((mean("loan,kernel-exit") - number(loan, "steer_per_s")).abs() < 1e-6);
}
