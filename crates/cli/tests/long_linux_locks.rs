// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make test-long`, where `make linux-guest` has built the Linux guest with our locks: Linux's own lock torture finds no two
//! inside one spinlock, with each of them, and finds it when the locks are broken on purpose; every load runs with each lock.
//! Also what takes as long and needs no kernel of ours: policies that come and go while stock guests run.

mod common;

use std::process::Command;

use common::{Ended, cache, ended, repository};
use serde_json::Value;
use unspin_testbed::self_test;

const LOCKS: [&str; 5] = [
    "native",
    "ticket",
    "preemptable",
    "pv_ticket",
    "pv_preemptable",
];

/// Nothing to test where it is not built; says so.
fn is_built() -> bool {
    let built = cache().join("guest-linux/current/vmlinuz-unspin").exists();
    if !built {
        self_test::not_tested("the Linux guest with our locks is not built (`make linux-guest`)");
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

/// The numbers of a column of all rows of a table that a `--json` run printed.
fn column(ended: &Ended, table: &str, key: &str) -> Vec<Option<f64>> {
    assert_eq!(ended.status, 0, "{}\n{}", ended.out, ended.err);
    let object: Value = serde_json::from_str(&ended.out).expect("JSON");
    let rows = object["rows"].as_array().expect("rows").iter();
    rows.filter(|row| row["table"] == table)
        .map(|row| row[key].as_f64())
        .collect()
}

#[test]
fn lock_torture_finds_no_two_inside() {
    if !is_built() {
        return;
    }
    for lock in LOCKS {
        // Four vCPUs on two CPUs: holders and waiters are preempted; eCS's marks on, so that they are balanced, too.
        let ended = unspin(&format!(
            "testbed run -- unspin vm linux --lock {lock} --ecs on --vcpus 4 --load torture --loops 5 --runs 1 --json"
        ));
        let runs = column(&ended, "load_run", "load_ns");
        assert_eq!(runs, [Some(5e9)], "{lock}: {}", ended.err);
    }
}

#[test]
fn lock_torture_finds_broken_locks() {
    if !is_built() {
        return;
    }
    for lock in ["ticket", "preemptable", "pv_ticket", "pv_preemptable"] {
        let ended = unspin(&format!(
            "testbed run -- unspin vm linux --lock {lock} --kernel-argument unspin_fault=1 --vcpus 4 --load torture \
             --loops 5 --runs 1 --limit 60s --json"
        ));
        assert_ne!(ended.status, 0, "{lock}: nobody noticed: {}", ended.out);
        // The guest came up: what failed is the load, or the machine while it ran.
        let said = [
            "the load torture failed",
            "while running",
            "not done running",
        ];
        assert!(
            said.iter().any(|text| ended.err.contains(text)),
            "{lock}: {}",
            ended.err
        );
    }
}

#[test]
fn every_load_runs_with_every_lock() {
    if !is_built() {
        return;
    }
    let ended = unspin(
        "testbed run --deterministic --time-limit 600s -- unspin vm linux-locks --vms 2 --vcpus 2 --runs 1 --json",
    );
    let times = column(&ended, "cell", "load_mean_ns");
    assert_eq!(times.len(), 3 * 6, "{}", ended.out);
    assert!(times.iter().all(Option::is_some), "{}", ended.out);
    let ratios = column(&ended, "cell", "to_ticket");
    assert!(
        ratios.iter().flatten().all(|ratio| *ratio > 0.0),
        "{}",
        ended.out
    );
}

#[test]
fn guests_run_on_while_policies_come_and_go() {
    let ended = unspin(
        "testbed run --deterministic --time-limit 900s -- unspin vm linux-policies --loads hackbench --features vee21 \
         --shapes 1x4 --pairs 1 --runs 1 --ple-window 200 --ple-gap 65535 --ple-window-fixed --policy loan-cpl,kernel-exit \
         --policy gang --json",
    );
    let ratios = column(&ended, "cell", "throughput_ratio_to_stock");
    assert_eq!(ratios.len(), 2, "{}", ended.out);
    assert!(ratios.iter().all(Option::is_some), "{}", ended.out);
    // Ideal, stock twice, none and the two policies, one pair of each.
    let rates = column(&ended, "sample", "runs_per_s");
    assert_eq!(rates.len(), 6, "{}", ended.out);
}

#[test]
fn a_waiter_asks_for_help_and_marks_reach_the_host() {
    if !is_built() {
        return;
    }
    let steered = |flags: &str, counter: &str| {
        let ended = unspin(&format!(
            "testbed run -- unspin steer --policy loan --json -- unspin vm linux --lock ticket {flags} --vcpus 4 \
             --groups 1 --loops 30 --runs 2"
        ));
        assert_eq!(ended.status, 0, "{}\n{}", ended.out, ended.err);
        let object = ended.json_of("steer");
        let rows = object["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["counter"] == counter);
        row.and_then(|row| row["value"].as_u64())
            .expect("the counter")
    };
    assert!(steered("--help-after 512", "asked") > 0);
    assert_eq!(steered("", "asked"), 0);
    // A loan is ended by its borrower only where a guest keeps a pv page.
    assert!(steered("--ecs on", "given_back") > 0);
}
