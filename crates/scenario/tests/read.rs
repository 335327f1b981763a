// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read: defaults, every key, overrides, files, and back to text.

mod common;

use std::{fs, path::Path};

use proptest::prelude::*;
use unspin_scenario::{
    Distribution, Length, LockSharing, Overrides, PvPageMemory, Scenario, Shape, WorkUnit,
};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "s.toml").unwrap_or_else(|error| panic!("{}\n{text}", error.plain()))
}

fn overridden(text: &str, set: &[&str]) -> Result<Scenario, String> {
    let mut overrides = Overrides::default();
    for given in set {
        overrides.set(given).map_err(|error| error.to_string())?;
    }
    Scenario::parse_with(text, "s.toml", "s", &overrides).map_err(|error| error.plain())
}

#[test]
fn defaults() {
    let scenario = parse(common::MINIMAL);
    assert_eq!(scenario.name, "unnamed");
    assert_eq!(scenario.seed, 1);
    assert_eq!(scenario.length, Length::DurationNs(1_000_000_000));
    assert_eq!(scenario.warm_up_ns, 0);
    let host = &scenario.host;
    assert_eq!(
        (host.cpus, host.ple_window, host.ple_gap),
        (None, None, None)
    );
    assert!(!host.ple_window_fixed);
    let [vm] = &scenario.vms[..] else {
        panic!("one VM")
    };
    assert_eq!((vm.count, vm.vcpus, vm.lock.name()), (1, 2, "ticket"));
    assert_eq!(vm.locks, LockSharing::Shared(1));
    assert!(vm.user_work.is_nothing() && vm.kernel_work.is_nothing());
    assert_eq!(vm.hold, Distribution::constant(WorkUnit::Loops, 300));
    assert_eq!(
        (vm.shootdown_every_iterations, vm.wakeup_every_iterations),
        (0, 0)
    );
    assert_eq!((vm.tick_hz, vm.pause_every_spins), (250, 1));
    assert_eq!(vm.load_changes_every_ms, 0);
    assert!(vm.pause_exits && vm.halt_exits);
    assert_eq!((vm.log_records, vm.log_minimum_spins), (0, 0));
    assert!(!vm.pv_page);
    assert_eq!(vm.pv_page_memory, PvPageMemory::Guest);
    assert_eq!(vm.help_after_spins, 0);
}

#[test]
fn every_key() {
    let scenario = parse(
        r#"
name = "all"
seed = 0x2a
duration = "2s"
warm_up = "0.25s"
[host]
cpus = 2
ple_window = 3_000
ple_gap = 128
ple_window_fixed = true
[[vm]]
count = 3
vcpus = 64
lock = "preemptable_ticket"
locks = "private"
user_work = { exponential = "6us" }
kernel_work = { uniform = ["100 loops", "500 loops"] }
hold = "1 loop"
shootdown_every_iterations = 10
wakeup_every_iterations = 20
load_changes_every_ms = 5000
tick_hz = 0
pause_every_spins = 65536
pause_exits = false
halt_exits = false
log_records = 2560
log_minimum_spins = 2048
pv_page = true
pv_page_memory = "map"
help_after_spins = 65536
[[vm]]
vcpus = 1
lock = "test_and_set"
locks = 64
hold = "0ns"
"#,
    );
    assert_eq!((scenario.name.as_str(), scenario.seed), ("all", 42));
    assert_eq!(scenario.warm_up_ns, 250_000_000);
    assert_eq!(scenario.host.ple_window, Some(3_000));
    assert!(scenario.host.ple_window_fixed);
    let [first, second] = &scenario.vms[..] else {
        panic!("two groups")
    };
    assert_eq!(first.user_work.shape, Shape::Exponential { mean: 6_000 });
    assert_eq!(first.user_work.unit, WorkUnit::Nanoseconds);
    assert_eq!(
        first.kernel_work.shape,
        Shape::Uniform {
            low: 100,
            high: 500
        }
    );
    assert_eq!((first.log_records, first.log_minimum_spins), (2_560, 2_048));
    assert!(!first.pause_exits && !first.halt_exits);
    assert!(first.pv_page);
    assert_eq!(first.pv_page_memory, PvPageMemory::Map);
    assert_eq!(first.help_after_spins, 65_536);
    assert_eq!(first.load_changes_every_ms, 5_000);
    assert_eq!(second.locks, LockSharing::Shared(64));
    assert_eq!(second.hold.unit, WorkUnit::Nanoseconds);
}

#[test]
fn overrides_replace_values() {
    let set = |set: &[&str]| overridden(common::MINIMAL, set).expect("valid");
    assert_eq!(set(&["vm.vcpus=4"]).vms[0].vcpus, 4);
    assert_eq!(set(&["vm.0.vcpus = 4"]).vms[0].vcpus, 4);
    assert_eq!(set(&["seed=7", "seed=8"]).seed, 8);
    assert_eq!(set(&["host.cpus=1"]).host.cpus, Some(1));
    assert_eq!(
        set(&["duration=250ms"]).length,
        Length::DurationNs(250_000_000)
    );
    assert_eq!(set(&["iterations=5"]).length, Length::Iterations(5));
    assert_eq!(
        set(&["vm.lock=test_and_set"]).vms[0].lock.name(),
        "test_and_set"
    );
    assert_eq!(
        set(&["vm.hold=6us"]).vms[0].hold.unit,
        WorkUnit::Nanoseconds
    );
    let drawn = set(&["vm.hold={ exponential = \"9 loops\" }"]);
    assert_eq!(drawn.vms[0].hold.shape, Shape::Exponential { mean: 9 });
    let two = common::MINIMAL.to_owned() + "[[vm]]\nvcpus = 3\nlock = \"ticket\"\nhold = \"1us\"\n";
    let one = overridden(&two, &["vm.1.vcpus=9"]).expect("valid");
    assert_eq!((one.vms[0].vcpus, one.vms[1].vcpus), (2, 9));
    let warm = common::MINIMAL.replace("\n\n", "\nwarm_up = \"1ms\"\n\n");
    assert_eq!(
        overridden(&warm, &["iterations=5"])
            .expect("valid")
            .warm_up_ns,
        0
    );
}

#[test]
fn overrides_are_refused_with_their_name() {
    let refused = |set: &[&str], pieces: &[&str]| {
        let error = overridden(common::MINIMAL, set).expect_err("refused");
        for piece in pieces {
            assert!(error.contains(piece), "{error}\nlacks {piece}");
        }
    };
    refused(
        &["vm.vcpus=65"],
        &["s.toml with --set vm.vcpus=65:", "from 1 to 64"],
    );
    refused(&["vm.1.vcpus=2"], &["unknown key `vm.1.vcpus`"]);
    refused(&["vm.vcpu=2"], &["--set vm.vcpu=2: there is no such key"]);
    refused(&["host=2"], &["there is no such key"]);
    refused(&["a.b.c.d=2"], &["there is no such key"]);
    refused(&["vcpus"], &["write key=value"]);
    refused(&["seed=1\nname=2"], &["`seed` cannot be the text"]);
    // The file must be valid by itself: a flag does not complete it.
    let incomplete = common::MINIMAL.replace("duration = \"1s\"", "");
    let error = overridden(&incomplete, &["duration=1s"]).expect_err("incomplete");
    assert!(error.starts_with("s.toml:1:1: neither"), "{error}");
}

#[test]
fn files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("my scenario.toml");
    fs::write(&path, common::MINIMAL).expect("written");
    let load = |path: &Path| Scenario::load(path, &Overrides::default());
    assert_eq!(load(&path).expect("valid").name, "my-scenario");
    let missing = load(&folder.path().join("none.toml")).expect_err("missing");
    assert!(
        missing
            .plain()
            .contains("none.toml: the scenario cannot be read: No such file")
    );
    assert!(
        load(folder.path())
            .expect_err("a folder")
            .plain()
            .contains("cannot be read")
    );
    fs::write(&path, b"\xff\xfe").expect("written");
    assert!(
        load(&path)
            .expect_err("no text")
            .plain()
            .contains("not UTF-8")
    );
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("written");
    assert!(
        load(&path)
            .expect_err("too long")
            .plain()
            .contains("longer than 1048576")
    );
}

#[test]
fn hash_names_what_runs_and_not_how_it_is_written() {
    let plain = parse(common::MINIMAL);
    let same = parse(&common::MINIMAL.replace("\"1s\"", "\"1000 ms\" # the same"));
    assert_eq!(plain.hash(), same.hash());
    assert_eq!(plain.hash().len(), 64);
    let other = parse(&common::MINIMAL.replace("300", "301"));
    assert_ne!(plain.hash(), other.hash());
}

#[test]
fn schema_and_parser_know_the_same_keys() {
    let schema = unspin_scenario::json_schema();
    let keys = |object: &serde_json::Value| -> Vec<String> {
        assert_eq!(object["additionalProperties"], false);
        let mut keys: Vec<_> = object["properties"]
            .as_object()
            .expect("properties")
            .keys()
            .cloned()
            .collect();
        keys.sort();
        keys
    };
    // The parser's lists, as its own messages give them.
    let allowed = |text: &str| -> Vec<String> {
        let error = Scenario::parse(text, "s").expect_err("an unknown key");
        let list = error.allowed().expect("a list").to_owned();
        let mut keys: Vec<_> = list
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(schema), allowed("zzzzzz = 1"));
    assert_eq!(
        keys(&schema["$defs"]["Host"]),
        allowed(
            "iterations = 1\nvm = [{ vcpus = 1, lock = \"ticket\", hold = \"1us\" }]\n[host]\nzzzzzz = 1"
        )
    );
    assert_eq!(
        keys(&schema["$defs"]["LabSettings"]),
        allowed(
            "iterations = 1\nvm = [{ vcpus = 1, lock = \"ticket\", hold = \"1us\" }]\n[lab]\nzzzzzz = 1"
        )
    );
    assert_eq!(
        keys(&schema["$defs"]["Vm"]),
        allowed("iterations = 1\n[[vm]]\nzzzzzz = 1")
    );
    assert_eq!(schema["required"], serde_json::json!(["vm"]));
    assert_eq!(
        schema["$defs"]["Vm"]["required"],
        serde_json::json!(["vcpus", "lock", "hold"])
    );
}

#[test]
fn a_default_of_the_schema_is_what_an_absent_key_says() {
    let mut seen = 0;
    for table in ["host", "lab", "vm"] {
        let head = match table {
            "vm" => String::new(),
            _ => format!("[{table}]\n"),
        };
        let absent = parse(&format!("{}{head}", common::MINIMAL));
        let properties = unspin_scenario::table_schema(table)["properties"].as_object();
        for (key, property) in properties.expect("keys") {
            // A list has a value for each [[vm]], or none at all: it cannot be written empty.
            let Some(default) = property.get("default").filter(|value| !value.is_array()) else {
                continue;
            };
            let text = format!("{}{head}{key} = {default}\n", common::MINIMAL);
            assert_eq!(parse(&text), absent, "{text}");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn printed_scenarios_read_back_equal(scenario in common::scenario()) {
        let text = scenario.to_toml();
        let back = Scenario::parse(&text, "printed").map_err(|e| TestCaseError::fail(e.plain()))?;
        prop_assert_eq!(&back, &scenario);
        prop_assert_eq!(back.to_toml(), text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = Scenario::parse(&text, "any").map_err(|error| error.plain());
    }

    #[test]
    fn mutated_scenarios_are_read_or_refused(
        scenario in common::scenario(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..8),
    ) {
        let mut bytes = scenario.to_toml().into_bytes();
        for (place, byte, how) in edits {
            let at = place.index(bytes.len().max(1));
            match how {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => { bytes.remove(at); }
                _ => bytes.insert(at.min(bytes.len()), byte),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match Scenario::parse(&text, "mutated") {
            // What is accepted is valid: it prints and reads back.
            Ok(scenario) => prop_assert_eq!(
                Scenario::parse(&scenario.to_toml(), "again").map_err(|e| e.plain()),
                Ok(scenario)
            ),
            Err(error) => prop_assert!(error.plain().starts_with("mutated")),
        }
    }

    #[test]
    fn any_override_is_taken_or_refused(key in "[a-z_.0-9]{0,20}", value in "\\PC{0,20}") {
        let _ = overridden(common::MINIMAL, &[&format!("{key}={value}")]);
        let _ = overridden(common::MINIMAL, &[&format!("vm.hold={value}")]);
    }
}
