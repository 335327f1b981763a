// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab calibrate` and `unspin lab conform`. Nothing here needs KVM or the testbed.

use std::fs;

use crate::common::{
    folder,
    lab::{LAB_SCENARIO, rows},
    scenario, unspin,
};

/// A folder with costs, a scenario and cells; what conform says of them.
fn conform(costs: &str, cells: &str) -> crate::common::Ended {
    let folder = folder(LAB_SCENARIO);
    fs::write(folder.path().join("costs.toml"), costs).expect("written");
    let text = format!(
        "measured = \"here\"\ncosts = \"costs.toml\"\n[[group]]\nname = \"g\"\nscenario = \"s.toml\"\ncells = [{cells}]\n"
    );
    let file = folder.path().join("c.toml");
    fs::write(&file, text).expect("written");
    unspin(&[
        "lab",
        "conform",
        &file.display().to_string(),
        "--seeds",
        "2",
        "--json",
    ])
}

#[test]
fn predictions_are_those_of_lab_run_with_the_same_costs() {
    let costs = "work_loop_ps = 900\nexit_ns = 3000\n";
    let ended = conform(
        costs,
        "{ lock = \"ticket\", policy = \"stock\", operations_per_second = 1000 }, \
         { lock = \"ticket\", policy = \"steer,loan\", operations_per_second = 1e9 }, \
         { lock = \"ticket\", policy = \"ideal\", operations_per_second = 1 }",
    );
    let cells = rows(&ended, "cell");
    let folder = folder(LAB_SCENARIO);
    let file = folder.path().join("costs.toml");
    fs::write(&file, costs).expect("written");
    let each = ["3", "4"].map(|seed| {
        let costs = file.display().to_string();
        let (s, policy) = (scenario(&folder), "lab.policy=loan");
        let sets = ["--set", "lab.scheduler=steer", "--set", policy];
        let ended = unspin(
            &[
                &[
                    "lab", "run", &s, "--json", "--costs", &costs, "--seed", seed,
                ],
                &sets[..],
            ]
            .concat(),
        );
        let vms = rows(&ended, "vm");
        vms[0]["operations_per_second"].as_f64().expect("a rate")
    });
    let mean = (each[0] + each[1]) / 2.0;
    let predicted = cells[1]["predicted_per_second"].as_f64().expect("a rate");
    assert!(
        (predicted - mean).abs() < 1e-6 * mean,
        "{predicted} and {mean}"
    );
    assert_eq!(cells[1]["hit"], "no");
    // Loan was measured above stock and stock above ideal; the lab has ideal at the top.
    let orders = rows(&ended, "order");
    let policies = orders
        .iter()
        .find(|row| row["of"] == "policies")
        .expect("an order");
    assert_eq!(policies["pairs"], 3);
    assert!(
        policies["agree"].as_u64().expect("a count") < 3,
        "{policies}"
    );
}

#[test]
fn wrong_cells_are_refused_before_anything_runs() {
    let cell = "{ lock = \"ticket\", policy = \"stock\", operations_per_second = 1 }";
    for (costs, cells, piece) in [
        ("nonsense_ns = 1", cell, "nonsense_ns"),
        ("exit_ns = \"1\"", cell, "no whole number"),
        (
            "",
            "{ lock = \"ticket\", policy = \"stock\", operations_per_second = 0 }",
            "above 0",
        ),
        (
            "",
            "{ lock = \"ticket\", policy = \"lone\", operations_per_second = 1 }",
            "no policy `lone`",
        ),
        (
            "",
            "{ lock = \"tickets\", policy = \"stock\", operations_per_second = 1 }",
            "tickets",
        ),
        ("", "{ lock = \"ticket\" }", "policy"),
    ] {
        conform(costs, cells).refused(2, &[piece]);
    }
    unspin(&["lab", "conform", "/nonexistent.toml"]).refused(2, &["/nonexistent.toml"]);
}

#[test]
fn this_machine_is_calibrated_and_the_lab_takes_what_was_written() {
    let folder = folder(LAB_SCENARIO);
    let out = folder.path().join("costs.toml").display().to_string();
    let figures = rows(
        &unspin(&["lab", "calibrate", "threads", "--json", "--out", &out]),
        "cost",
    );
    for cost in [
        "work_loop_ps",
        "wait_spin_ps",
        "tsc_mhz",
        "switch_ns",
        "line_hit_ns",
    ] {
        let figure = figures.iter().find(|row| row["cost"] == cost).expect(cost);
        assert!(
            figure["value"].as_u64().is_some_and(|value| value > 0),
            "{figure}"
        );
    }
    let exit = figures
        .iter()
        .find(|row| row["cost"] == "exit_ns")
        .expect("a row");
    assert!(exit["value"].is_null() && exit["default"] == 500, "{exit}");
    rows(
        &unspin(&["lab", "run", &scenario(&folder), "--json", "--costs", &out]),
        "vm",
    );
}
