// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin serve` and `top` in the testbed: what they say of VMs that spin and of VMs that do not. Needs what `make setup` puts into
//! the cache.

mod common;

use std::process::Command;

use common::{ended, repository};
use serde_json::Value;

const SERVE: &str = "unspin serve --socket /run/watch.sock --burst-every 1s --";
const TOP: &str = "unspin top --socket /run/watch.sock --once --json --interval 2s";
const RUN: &str = "unspin vm run scenarios/demo/2x4-ticket.toml --observe off --set";

/// What `top` prints of 2 VMs of 4 vCPUs when the bursts of a `serve` have sampled both. How soon they have is up to the speed of
/// the machine that emulates the testbed, so `top` is asked again until then, at most 100 times.
fn sampled() -> Vec<Value> {
    let shell = common::cache().join("linux-guest/current/tree/usr/bin/busybox");
    let script = format!(
        "\"$@\" >&2 & n=0
        while n=$((n+1)); kill -0 $! && rows=$({TOP}) && [ $n -lt 100 ]; do
            case $rows in *'\"bursts\":'[1-9]*'\"bursts\":'[1-9]*) break;; esac
        done
        kill $!; wait; echo \"$rows\""
    );
    let shell = [shell.to_str().expect("UTF-8"), "sh", "-c", &script, "sh"];
    let run = RUN.split(' ').chain(["duration=500s", "--set", "seed=1"]);
    rows(SERVE.split(' ').chain(shell).chain(run))
}

/// What `top` prints of the last whole 2 s of a run of 14 s, changed like that.
fn not_sampled(change: &str) -> Vec<Value> {
    let line = format!("{SERVE} {TOP} -- {RUN} duration=14s --set");
    rows(line.split(' ').chain([change]))
}

/// The rows of the object that this command prints in the testbed.
fn rows<'a>(line: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let mut command = Command::new(common::UNSPIN);
    command
        .args(["testbed", "run", "--"])
        .args(line)
        .current_dir(repository());
    let ended = ended(&mut command);
    assert_eq!(ended.status, 0, "{ended:#?}");
    let object: Value = serde_json::from_str(&ended.out).expect("one JSON object");
    object["rows"].as_array().expect("rows").clone()
}

fn of<'a>(rows: &'a [Value], table: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["table"] == table).collect()
}

#[track_caller]
fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"))
}

#[test]
fn a_convoy_is_told_from_vms_that_only_wait_for_a_cpu() {
    let rows = sampled();
    let vms = of(&rows, "vm");
    assert_eq!(vms.len(), 2, "{rows:#?}");
    for vm in &vms {
        // Its guests say some 97 %: what is counted is a lower bound.
        assert!(number(vm, "spin_percent") > 40.0, "{vm}");
        assert!(number(vm, "wait_percent") > 200.0, "{vm}");
        assert!(number(vm, "ple_exits_per_second") > 100.0, "{vm}");
        assert!(number(vm, "slices_lost_per_second") > 10.0, "{vm}");
        let sampled = number(vm, "bursts") >= 1.0 && vm["sampled_cause"].is_string();
        assert!(sampled, "{vm}");
    }
    let vcpus = of(&rows, "vcpu");
    assert_eq!(vcpus.len(), 8, "{rows:#?}");
    for vcpu in vcpus {
        // It ran, waited or was halted all the time, as far as ticks tell.
        let parts = ["run_percent", "wait_percent", "halted_percent"];
        let all: f64 = parts.iter().map(|part| number(vcpu, part)).sum();
        assert!((70.0..130.0).contains(&all), "{all}: {vcpu}");
    }
    assert!(!of(&rows, "blame").is_empty(), "{rows:#?}");

    // As many vCPUs on as many CPUs, that hardly ever meet at their lock: pure steal.
    let rows = not_sampled("vm.user_work=\"2000000 loops\"");
    let vms = of(&rows, "vm");
    assert_eq!(vms.len(), 2, "{rows:#?}");
    for vm in vms {
        assert!(number(vm, "wait_percent") > 200.0, "{vm}");
        assert!(number(vm, "spin_percent") < 5.0, "{vm}");
    }
}
