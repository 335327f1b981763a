// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make test-long`, where `make linux-module` has built the module for unmodified Linux guests: their own counts reach the
//! scheduler, which grants by them, and a guest without the module is granted nothing.

mod common;

use std::{path::PathBuf, process::Command};

use common::{ended, repository};
use serde_json::Value;
use unspin_testbed::self_test;

/// Nothing to test where it is not built; says so.
fn is_built() -> bool {
    let cache = std::env::var_os("UNSPIN_CACHE").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/unspin"),
        PathBuf::from,
    );
    let built = cache.join("guest-module/current/counts.files").exists();
    if !built {
        self_test::not_tested("the guests' module is not built (`make linux-module`)");
    }
    built
}

/// The scheduler's counters after a hackbench in a stock guest of four vCPUs on two CPUs.
fn counters(steer: &str, guest: &str) -> Value {
    let line = format!(
        "testbed run --deterministic --time-limit 300s -- unspin steer --policy ecs-give-back {steer} --json -- unspin vm \
         linux {guest} --vcpus 4 --groups 1 --loops 20 --runs 1 --ple-window 100 --ple-gap 65535 --ple-window-fixed \
         --observe off --json"
    );
    let mut command = Command::new(common::UNSPIN);
    let command = command.args(line.split_whitespace());
    let ended = ended(command.current_dir(repository()));
    assert_eq!(ended.status, 0, "{}\n{}", ended.out, ended.err);
    ended.json_of("steer")
}

#[track_caller]
fn counter(object: &Value, name: &str) -> u64 {
    let rows = object["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["counter"] == name);
    let value = row.and_then(|row| row["value"].as_u64());
    value.unwrap_or_else(|| panic!("no counter {name} in {object}"))
}

#[test]
fn a_stock_guest_with_the_module_is_granted_time() {
    if !is_built() {
        return;
    }
    for guest in ["--counts on", "--counts hooks"] {
        let object = counters("", guest);
        assert!(
            counter(&object, "counts") >= 4,
            "{guest}: each vCPU: {object}"
        );
        assert_eq!(counter(&object, "pv_page_failures"), 0, "{guest}: {object}");
        assert!(counter(&object, "granted") > 0, "{guest}: {object}");
    }
    let object = counters("", "");
    for none in ["counts", "granted"] {
        assert_eq!(counter(&object, none), 0, "{none}: {object}");
    }
}

#[test]
fn so_is_one_whose_symbols_are_known() {
    if !is_built() {
        return;
    }
    // Host and guest are the same kernel here, and neither moves its addresses.
    let object = counters("--sections=/proc/kallsyms", "");
    assert!(counter(&object, "in_sections") > 0, "{object}");
    assert!(counter(&object, "granted") > 0, "{object}");
}
