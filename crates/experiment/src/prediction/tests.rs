// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab beside rows that were made up.

use std::sync::Arc;

use super::*;
use crate::{
    plan::Column as Measured,
    world::kvm::tests::{AGAIN, IDEAL, NONE, STOCK, plan, rows_of},
};

/// What is said of it and what the lab says follow from one text: no seed, no cost and no lock's code may change unseen.
const TEXT: &str = "duration = \"30ms\"\nwarm_up = \"10ms\"\nseed = 5\n[host]\ncpus = 2\n[[vm]]\nvcpus = 4\n\
                    lock = \"ticket\"\nhold = \"10us\"\nuser_work = \"100us\"\npv_page = true\n";

fn costs_of_the_testbed() -> Vec<String> {
    crate::costs::overrides_in(crate::costs::TESTBED).expect("the testbed's costs")
}

/// The rows of the lab's table.
fn predicted(policies: &[&str]) -> Vec<serde_json::Value> {
    let scenario = Scenario::parse(TEXT, "s.toml").expect("a scenario");
    let plan = plan(policies);
    let mut columns = vec![IDEAL, STOCK, AGAIN, NONE];
    for at in 0..policies.len() {
        columns.push((Measured::Policy(at), [960.0, 962.0, 958.0, 960.0]));
    }
    let rows = rows_of(policies, &columns);
    let compared = Compared {
        scenario: &scenario,
        plan: &plan,
        rows: rows.iter().collect(),
    };
    let costs = costs_of_the_testbed();
    let predicted = predict(&[compared], &costs, 2, &Session::quiet()).expect("predicted");
    let written = predicted.iter().map(serde_json::to_value);
    written.collect::<Result<_, _>>().expect("JSON")
}

fn number(row: &serde_json::Value, key: &str) -> f64 {
    row[key]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {key} in {row}"))
}

/// Rivals are not left out of the table without a word.
#[test]
fn a_rival_has_no_prediction_and_says_so() {
    let scenario = Scenario::parse(TEXT, "s.toml").expect("a scenario");
    let plan = Plan {
        rivals: vec![crate::rival::Rival::Lavd],
        ..plan(&["loan"])
    };
    let columns: Vec<Planned> = planned(&scenario, &plan, None, &[]);
    let (name, last) = columns.last().expect("five");
    assert_eq!((columns.len(), name.as_str()), (5, "scx_lavd"));
    assert_eq!(
        last.as_ref().err().map(String::as_str),
        Some("the lab has no model of it")
    );
}

/// One row for each column, each with the run of `lab run` that it names.
#[test]
fn every_column_has_its_prediction() {
    let all = predicted(&["loan", "loan,kernel-exit"]);
    let columns: Vec<_> = all
        .iter()
        .filter_map(|row| row["column"].as_str())
        .collect();
    assert_eq!(
        columns,
        [
            "ideal",
            "stock",
            "refuse-yields",
            "loan",
            "loan,kernel-exit"
        ]
    );
    let scenario = Scenario::parse(TEXT, "s.toml").expect("a scenario");
    for (row, policy) in all[1..]
        .iter()
        .zip([None, Some("refuse-yields"), Some("loan")])
    {
        let mut more = vec!["duration=510ms".to_owned()];
        if let Some(policy) = policy {
            let words = [
                "lab.scheduler=steer".to_owned(),
                format!("lab.policy={policy}"),
            ];
            more.extend(words);
        }
        let scenario = changed(&scenario, &costs_of_the_testbed(), &more).expect("the lab's");
        let rate = |seed| {
            let mut scenario = scenario.clone();
            scenario.seed = seed;
            let outcome = pool::run_one(&scenario, &Arc::default())
                .unwrap_or_else(|error| panic!("{error:?}"));
            outcome.operations(None) as f64 * 1e9 / outcome.window_ns as f64
        };
        let mean = (rate(5) + rate(6)) / 2.0;
        assert!(
            (number(row, "predicted_per_s") / mean - 1.0).abs() < 1e-9,
            "{row}"
        );
        let ratio = number(row, "measured_per_s") / mean;
        assert!((number(row, "measured_to_predicted") / ratio - 1.0).abs() < 1e-9);
    }
}

/// The gap is that of the lab's own stock and ideal.
#[test]
fn gaps_are_of_the_labs_own_columns() {
    let all = predicted(&["loan"]);
    let rate = |at: usize| number(&all[at], "predicted_per_s");
    let gap = (rate(3) - rate(1)) / (rate(0) - rate(1));
    assert!((number(&all[3], "predicted_gap_closed") - gap).abs() < 1e-6);
    assert_eq!(number(&all[3], "measured_gap_closed"), 0.95);
    for column in &all[..3] {
        assert!(column["predicted_gap_closed"].is_null());
    }
}

#[test]
fn what_the_lab_cannot_run_says_why() {
    let all = predicted(&["./nobody.bpf.o"]);
    let row = all.last().expect("a row");
    assert!(row["predicted_per_s"].is_null() && row["measured_to_predicted"].is_null());
    let why = row["not_predicted"].as_str().expect("a reason");
    assert!(why.contains("nobody.bpf.o"), "{why}");
    assert!(all[1]["not_predicted"].is_null());
}

#[test]
fn a_cost_that_the_lab_does_not_know_is_refused() {
    check_costs(&costs_of_the_testbed()).expect("the lab knows them");
    let refused = check_costs(&["lab.costs.exit_us=7".to_owned()]);
    assert!(matches!(refused, Err(Error::Usage(text)) if text.contains("exit_us")));
}

/// A window's policy leaves the scheduler to the host, or stands beside one that steers; in a comparison of windows alone
/// there is no `refuse-yields`.
#[test]
fn windows_are_the_labs_windows() {
    let words = |text: &str| {
        let policy: PolicyChoice = text.parse().expect("a policy");
        steered(&policy)
    };
    let control = |name: &str| format!("lab.window_control={name}");
    let fixed = vec!["host.ple_window=750".to_owned(), control("fixed")];
    assert_eq!(words("window=750"), Ok(fixed));
    assert_eq!(words("window=kvm"), Ok(vec![control("kvm")]));
    let both = ["lab.scheduler=steer", "lab.policy=loan"].map(str::to_owned);
    assert_eq!(
        words("apple,loan"),
        Ok([&both[..], &[control("apple")]].concat())
    );
    assert!(words("apple=8/64/64/512").is_err());
    let all = predicted(&["window=500", "window=20000"]);
    let columns: Vec<_> = all
        .iter()
        .filter_map(|row| row["column"].as_str())
        .collect();
    assert_eq!(columns, ["ideal", "stock", "window=500", "window=20000"]);
    let exits = |row: &serde_json::Value| number(row, "predicted_per_s");
    assert!(
        exits(&all[2]) != exits(&all[3]),
        "another window, another run"
    );
    assert!(all[2]["predicted_gap_closed"].is_number() && all[1]["predicted_gap_closed"].is_null());
}

#[test]
fn costs_are_those_of_the_machine() {
    let of_the_testbed = costs(None, true).expect("the testbed's costs");
    assert!(of_the_testbed.contains(&"lab.costs.exit_ns=6232".to_owned()));
    let refused = |file: Option<&str>, in_testbed| match costs(file.map(Path::new), in_testbed) {
        Err(Error::Usage(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(refused(None, false).contains("--lab-costs"));
    assert!(refused(Some("/nonexistent"), true).contains("/nonexistent"));
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "exit_us = 7\n").expect("written");
    let path = file.path().to_string_lossy().into_owned();
    assert!(refused(Some(&path), true).contains("exit_us"));
}
