// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way to be refused: the message, its line and column, and what it says is allowed.

mod common;

use common::{HOLD, refused};
use unspin_scenario::Scenario;

const VCPUS: &str = "a whole number from 1 to 64";

#[test]
fn keys() {
    refused(
        "vcpus",
        "vcpu",
        (4, 1),
        "unknown key `vcpu` in [[vm]]",
        "did you mean `vcpus`?",
    );
    refused("vcpus", "vcpu", (4, 1), "", "`halt_exits`");
    refused(
        "duration",
        "length = 1\nduration",
        (1, 1),
        "unknown key `length`",
        "`warm_up`",
    );
    refused(
        "[[vm]]",
        "[host]\ncpu = 1\n[[vm]]",
        (4, 1),
        "unknown key `cpu` in [host]",
        "`cpus`",
    );
    refused(
        "vcpus = 2\n",
        "",
        (3, 1),
        "`vcpus` is missing in [[vm]]",
        VCPUS,
    );
    refused(HOLD, "", (3, 1), "`hold` is missing in [[vm]]", "300 loops");
    refused(
        "lock = \"ticket\"\n",
        "",
        (3, 1),
        "`lock` is missing",
        "`ticket`",
    );
}

#[test]
fn vcpus() {
    refused(
        "vcpus = 2",
        "vcpus = 0",
        (4, 9),
        "`vcpus` cannot be 0",
        VCPUS,
    );
    refused(
        "vcpus = 2",
        "vcpus = 65",
        (4, 9),
        "`vcpus` cannot be 65",
        VCPUS,
    );
    refused(
        "vcpus = 2",
        "vcpus = -1",
        (4, 9),
        "`vcpus` cannot be -1",
        VCPUS,
    );
    refused(
        "vcpus = 2",
        "vcpus = 1.5",
        (4, 9),
        "`vcpus` cannot be 1.5",
        VCPUS,
    );
    refused(
        "vcpus = 2",
        "vcpus = \"2\"",
        (4, 9),
        "the text \"2\"",
        VCPUS,
    );
    let huge = "vcpus = 99999999999999999999999999999999999999999999";
    refused("vcpus = 2", huge, (4, 9), "`vcpus` cannot be 9999", VCPUS);
}

#[test]
fn tasks() {
    refused(
        "hold",
        "tasks_per_vcpu = 9\nhold",
        (6, 18),
        "`tasks_per_vcpu` cannot be 9",
        "from 1 to 8",
    );
    refused(
        "hold",
        "wakeup_every_iterations = 1\ntasks_per_vcpu = 2\nhold",
        (7, 18),
        "`wakeup_every_iterations` halts a vCPU",
        "`wakeup_every_iterations = 0`",
    );
    refused(
        "vcpus = 2",
        "vcpus = 33\ntasks_per_vcpu = 2",
        (5, 18),
        "2 tasks on each of 33 vCPUs are more than 64",
        "at most 1",
    );
    refused(
        "hold",
        "workload = \"chess\"\nhold",
        (6, 12),
        "there is no workload `chess`",
        "`ping-pong`",
    );
}

#[test]
fn pv_page_memory() {
    refused(
        "hold",
        "pv_page_memory = \"map\"\nhold",
        (6, 18),
        "`pv_page_memory` says where the pv page lies, and this guest has none",
        "`pv_page = true`",
    );
    refused(
        "hold",
        "pv_page = true\npv_page_memory = \"host\"\nhold",
        (7, 18),
        "there is no pv_page_memory `host`",
        "`map`",
    );
}

#[test]
fn locks() {
    refused(
        "\"ticket\"",
        "\"tickets\"",
        (5, 8),
        "there is no lock `tickets`",
        "did you mean `ticket`?",
    );
    for name in [
        "test_and_set",
        "test_and_test_and_set",
        "ticket",
        "preemptable_ticket",
    ] {
        refused(
            "\"ticket\"",
            "\"semaphore\"",
            (5, 8),
            "there is no lock `semaphore`",
            &format!("`{name}`"),
        );
    }
    refused("\"ticket\"", "3", (5, 8), "`lock` cannot be 3", "`ticket`");
    refused(
        "hold",
        "locks = 65\nhold",
        (6, 9),
        "`locks` cannot be 65",
        "from 1 to 64, or \"private\"",
    );
    refused(
        "hold",
        "locks = 0\nhold",
        (6, 9),
        "`locks` cannot be 0",
        "\"private\"",
    );
    refused(
        "hold",
        "locks = \"own\"\nhold",
        (6, 9),
        "the text \"own\"",
        "\"private\"",
    );
}

#[test]
fn times() {
    refused(
        "\"1s\"",
        "\"0s\"",
        (1, 12),
        "`duration` cannot be 0s",
        "from 1ns to 86400s",
    );
    refused(
        "\"1s\"",
        "\"86401s\"",
        (1, 12),
        "`duration` cannot be 86401s",
        "86400s",
    );
    refused(
        "\"1s\"",
        "1",
        (1, 12),
        "`duration` cannot be 1",
        "such as \"2s\"",
    );
    refused(
        "\"1s\"",
        "\"1\"",
        (1, 12),
        "`1` has no unit",
        "such as \"2s\"",
    );
    refused(
        "\"1s\"",
        "\"5 loops\"",
        (1, 12),
        "is work, not a time",
        "such as \"2s\"",
    );
    refused(
        "\"1s\"",
        "\"1 fortnight\"",
        (1, 12),
        "not a unit of time",
        "\"250ms\"",
    );
    refused(
        "duration = \"1s\"",
        "",
        (1, 1),
        "neither `duration` nor `iterations`",
        "iterations = 1000",
    );
    refused(
        "\"1s\"",
        "\"1s\"\niterations = 5",
        (2, 14),
        "exclude each other",
        "keep the one",
    );
    refused(
        "duration = \"1s\"",
        "iterations = 0",
        (1, 14),
        "`iterations` cannot be 0",
        "from 1 to 4294967295",
    );
}

#[test]
fn warm_up() {
    let longer = "\"1s\"\nwarm_up = \"1s\"";
    refused(
        "\"1s\"",
        longer,
        (2, 11),
        "leaves nothing of a run of 1s",
        "shorter than `duration`",
    );
    let iterations = "iterations = 5\nwarm_up = \"1ms\"";
    refused(
        "duration = \"1s\"",
        iterations,
        (2, 11),
        "needs `duration`",
        "leave `warm_up` out",
    );
}

/// The key that a refusal of this text is about.
fn key(from: &str, to: &str) -> String {
    let text = common::MINIMAL.replacen(from, to, 1);
    let error = Scenario::parse(&text, "s.toml").expect_err("it is refused");
    error.key().to_owned()
}

#[test]
fn the_path_of_the_key() {
    assert_eq!(key("vcpus = 2", "vcpus = 65"), "vm.0.vcpus");
    assert_eq!(key("vcpus = 2", "vcpu = 2"), "vm.0.vcpu");
    assert_eq!(key("vcpus = 2\n", ""), "vm.0.vcpus");
    assert_eq!(key("duration = \"1s\"", "duration = \"1\""), "duration");
    assert_eq!(key("duration = \"1s\"", "[host]\ncpus = 0"), "host.cpus");
    assert_eq!(
        key("\"300 loops\"", "{ uniform = [\"5us\", \"4us\"] }"),
        "vm.0.hold.uniform.1"
    );
    assert_eq!(
        key("[[vm]]", "[lab]\ncosts = { exit_ns = \"1\" }\n[[vm]]"),
        "lab.costs.exit_ns"
    );
    // A rule between keys, of the second group.
    let second = "hold = \"300 loops\"\n[[vm]]\nvcpus = 64\ntasks_per_vcpu = 2\nlock = \"ticket\"\nhold = \"1us\"";
    assert_eq!(key("hold = \"300 loops\"", second), "vm.1.tasks_per_vcpu");
    // The file as a whole.
    assert_eq!(key("duration = \"1s\"", ""), "");
    assert_eq!(key("[[vm]]", "[[vm"), "");
}
