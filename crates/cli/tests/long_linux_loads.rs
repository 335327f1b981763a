// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make test-long`, where `make linux-loads` has unpacked the loads of Debian's packages: each gives its figures in an unmodified
//! guest; a run that measured nothing is an error; a comparison carries the latencies.

mod common;

use std::process::Command;

use common::{Ended, cache, ended, repository};
use serde_json::Value;
use unspin_testbed::self_test;

/// Nothing to test where they are not built; says so.
fn are_built() -> bool {
    let built = cache().join("guest-loads/current").exists();
    if !built {
        self_test::not_tested("the loads of Linux guests are not there (`make linux-loads`)");
    }
    built
}

fn unspin(line: &str) -> Ended {
    let mut command = Command::new(common::UNSPIN);
    ended(
        command
            .args(line.split_whitespace())
            .current_dir(repository()),
    )
}

/// A figure of the only run of a load in one guest of four vCPUs, by key.
#[track_caller]
fn run_of(load: &str) -> Value {
    let ended = unspin(&format!(
        "testbed run --deterministic --time-limit 400s -- unspin vm linux --load {load} --features stock --runs 1 \
         --observe off --json"
    ));
    assert_eq!(ended.status, 0, "{load}: {}\n{}", ended.out, ended.err);
    let object: Value = serde_json::from_str(&ended.out).expect("JSON");
    let rows = object["rows"].as_array().expect("rows").iter();
    let mut runs = rows.filter(|row| row["table"] == "load_run");
    let run = runs.next().expect("a run").clone();
    assert!(runs.next().is_none(), "{}", ended.out);
    let ns = run["load_ns"].as_f64().expect("a time");
    assert!((1e6..60e9).contains(&ns), "{load}: {run}");
    run
}

/// Which figures a run has beside its time.
#[track_caller]
fn has(load: &str, keys: &[&str]) {
    let run = run_of(load);
    for key in ["requests_per_s", "p99_ns", "max_ns"] {
        let figure = run[key].as_f64();
        assert_eq!(figure.is_some(), keys.contains(&key), "{load}: {run}");
        assert!(figure.is_none_or(|figure| figure > 0.0), "{load}: {run}");
    }
}

#[test]
fn ebizzys_pattern_shoots_down_tlbs() {
    if are_built() {
        has("ebizzy", &["requests_per_s"]);
        // Of features stock the guest leaves out preempted vCPUs only.
        let run = run_of("ebizzy");
        let shootdowns = run["tlb_shootdowns"].as_u64().expect("counted");
        assert!(shootdowns > 100, "{run}");
    }
}

#[test]
fn sysbench_takes_its_mutex() {
    if are_built() {
        has("sysbench", &["p99_ns", "max_ns"]);
    }
}

#[test]
fn openmp_spins_at_its_barriers() {
    if are_built() {
        has("openmp", &[]);
    }
}

#[test]
fn dbench_moves_files() {
    if are_built() {
        has("dbench", &["max_ns"]);
    }
}

#[test]
fn pgbench_is_served() {
    if are_built() {
        has("pgbench", &["requests_per_s", "p99_ns", "max_ns"]);
    }
}

#[test]
fn kernbench_builds_a_lua_that_runs() {
    if are_built() {
        has("kernbench", &[]);
    }
}

#[test]
fn the_collector_of_a_go_program_is_busy() {
    if are_built() {
        has("gc", &["requests_per_s", "p99_ns", "max_ns"]);
    }
}

/// Needs what `make setup` unpacks, and no more.
#[test]
fn sleepers_beside_hackbench_say_how_late_they_wake_up() {
    has("cyclictest", &["p99_ns", "max_ns"]);
}

#[test]
fn a_run_that_measured_nothing_is_an_error() {
    if !are_built() {
        return;
    }
    // dbench's first second does not count.
    let line = "testbed run --deterministic --time-limit 300s -- unspin vm linux --load dbench --loops 1 --runs 1 --observe off";
    let ended = unspin(line);
    assert_ne!(ended.status, 0, "{}", ended.out);
    assert!(ended.err.contains("it moved nothing"), "{}", ended.err);
}

#[test]
fn policies_are_compared_on_latencies_too() {
    let ended = unspin(
        "testbed run --deterministic --time-limit 900s -- unspin vm linux-policies --loads cyclictest --features stock \
         --shapes 1x4 --pairs 1 --runs 1 --policy kernel-exit,candidates=strict --json",
    );
    assert_eq!(ended.status, 0, "{}\n{}", ended.out, ended.err);
    let object: Value = serde_json::from_str(&ended.out).expect("JSON");
    let rows = object["rows"].as_array().expect("rows");
    let cell = rows.iter().find(|row| row["table"] == "cell");
    let cell = cell.expect("a row");
    for key in [
        "ideal_p99_ns",
        "stock_p99_ns",
        "policy_p99_ns",
        "policy_max_ns",
    ] {
        assert!(
            cell[key].as_f64().is_some_and(|ns| ns > 0.0),
            "{key}: {cell}"
        );
    }
    assert!(cell["stock_requests_per_s"].is_null(), "{cell}");
}
