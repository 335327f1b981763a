// SPDX-License-Identifier: MIT OR Apache-2.0
//! Refusals of work, of the rest of `[[vm]]`, of `[host]` and of the file as a whole.

mod common;

use common::{HOLD, refused};
use unspin_scenario::Scenario;

#[test]
fn work() {
    let at = |text: &str| format!("hold = {text}");
    let cases = [
        ("300", 8, "`hold` cannot be 300", "\"300 loops\""),
        ("\"300\"", 8, "`300` has no unit", "loops, ns, us, ms, s"),
        (
            "\"3 hours\"",
            8,
            "`hours` is not a unit of work",
            "loops, ns",
        ),
        ("\"101ms\"", 8, "`hold` cannot be 101ms", "at most 100ms"),
        (
            "\"500000001 loops\"",
            8,
            "`hold` cannot be 500000001 loops",
            "at most 500000000 loops",
        ),
        (
            "{ exponential = \"0 loops\" }",
            24,
            "`exponential` cannot be 0 loops",
            "above 0",
        ),
        (
            "{ normal = \"1 loop\" }",
            10,
            "unknown key `normal` in `hold`",
            "`exponential`",
        ),
        (
            "{ }",
            8,
            "`hold`: a distribution needs one shape",
            "uniform",
        ),
        (
            "{ uniform = [\"5 loops\", \"4 loops\"] }",
            32,
            "`uniform` cannot be 4 loops",
            "not below the lower one, 5 loops",
        ),
        (
            "{ uniform = [\"5 loops\", \"6us\"] }",
            32,
            "`uniform` cannot be 6us",
            "in the unit of the other one, 5 loops",
        ),
        (
            "{ uniform = [\"5 loops\"] }",
            20,
            "`uniform` cannot be an array of 1",
            "two bounds",
        ),
        (
            "{ uniform = \"5 loops\" }",
            20,
            "`uniform` cannot be",
            "two bounds",
        ),
    ];
    for (text, column, message, allowed) in cases {
        let column = column.min(common::MINIMAL.len());
        refused(HOLD, &at(text), (6, column), message, allowed);
    }
}

#[test]
fn rest_of_a_vm() {
    let line = |key: &str| format!("{key}\nhold");
    let cases = [
        ("count = 0", 9, "`count` cannot be 0", "from 1 to 1000"),
        (
            "count = 1001",
            9,
            "`count` cannot be 1001",
            "from 1 to 1000",
        ),
        (
            "tick_hz = 10001",
            11,
            "`tick_hz` cannot be 10001",
            "from 0 to 10000",
        ),
        (
            "pause_every_spins = 0",
            21,
            "`pause_every_spins` cannot be 0",
            "from 1 to 65536",
        ),
        (
            "help_after_spins = -1",
            20,
            "`help_after_spins` cannot be -1",
            "from 0 to 4294967295",
        ),
        (
            "pause_exits = 1",
            15,
            "`pause_exits` cannot be 1",
            "true or false",
        ),
        (
            "log_records = 81921",
            15,
            "no room for 81921 records of each of 2 vCPUs",
            "from 0 to 81920",
        ),
    ];
    for (text, column, message, allowed) in cases {
        refused("hold", &line(text), (6, column), message, allowed);
    }
    let alone = "vcpus = 1\nwakeup_every_iterations = 5";
    refused(
        "vcpus = 2",
        alone,
        (5, 27),
        "needs another vCPU",
        "0 (never)",
    );
    let alone = "vcpus = 1\nshootdown_every_iterations = 5";
    refused(
        "vcpus = 2",
        alone,
        (5, 30),
        "needs another vCPU",
        "0 (never)",
    );
    let other = "vcpus = 2\nload_changes_every_ms = 5\nworkload = \"ping-pong\"";
    refused(
        "vcpus = 2",
        other,
        (5, 25),
        "only the workload \"iterations\" has a load that changes",
        "0 (never)",
    );
}

#[test]
fn host() {
    let host = |text: &str| format!("[host]\n{text}\n[[vm]]");
    let cases = [
        ("cpus = 0", 8, "`cpus` cannot be 0", "from 1 to 4096"),
        (
            "scheduler = \"stock\"",
            1,
            "unknown key `scheduler`",
            "write `lab.scheduler`",
        ),
        (
            "policy = \"none\"",
            1,
            "unknown key `policy`",
            "`unspin steer --policy`",
        ),
        (
            "ple_window = 65536",
            14,
            "`ple_window` cannot be 65536",
            "from 1 to 65535",
        ),
        (
            "ple_gap = 0",
            11,
            "`ple_gap` cannot be 0",
            "from 1 to 65535",
        ),
        (
            "ple_window_fixed = \"no\"",
            20,
            "the text \"no\"",
            "true or false",
        ),
    ];
    for (text, column, message, allowed) in cases {
        refused("[[vm]]", &host(text), (4, column), message, allowed);
    }
    refused(
        "duration",
        "host = 1\nduration",
        (1, 8),
        "`host` cannot be 1",
        "[host]",
    );
}

#[test]
fn top() {
    refused(
        "duration",
        "seed = -1\nduration",
        (1, 8),
        "`seed` cannot be -1",
        "from 0 to 9223372036854775807",
    );
    refused(
        "duration",
        "name = \"a b\"\nduration",
        (1, 8),
        "`name` cannot be",
        "A-Z a-z 0-9",
    );
    refused(
        "duration",
        "name = \"\"\nduration",
        (1, 8),
        "`name` cannot be",
        "1 to 64",
    );
    refused(
        "[[vm]]",
        "[[vm]]\ncount = 1000\nvcpus = 1\nlock = \"ticket\"\nhold = \"1us\"\n[[vm]]",
        (1, 1),
        "1001 VMs",
        "at most 1000",
    );
    refused("duration", "duration =\nx", (1, 11), "this is not TOML", "");
    let error = Scenario::parse("duration = \"1s\"\n", "s.toml").expect_err("no VM");
    assert!(
        error.plain().contains("`vm` is missing"),
        "{}",
        error.plain()
    );
    let error = Scenario::parse("duration = \"1s\"\nvm = []\n", "s.toml").expect_err("no VM");
    assert_eq!((error.line(), error.column()), (2, 6));
    let error = Scenario::parse("duration = \"1s\"\nvm = [3]\n", "s.toml").expect_err("no table");
    assert_eq!((error.line(), error.column()), (2, 7));
}

#[test]
fn the_fancy_form_shows_the_line() {
    let text = common::MINIMAL.replace("vcpus = 2", "vcpus = 65");
    let error = Scenario::parse(&text, "s.toml").expect_err("65 vCPUs");
    let report = format!("{:?}", miette::Report::new(error));
    for piece in ["s.toml", "vcpus = 65", "from 1 to 64", ":4:9"] {
        assert!(report.contains(piece), "{report}\nlacks {piece}");
    }
}
