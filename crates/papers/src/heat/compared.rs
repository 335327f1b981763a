// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of comparisons (`unspin compare`, `lab compare`, `vm linux-policies`), which say themselves what they are of.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Entry, Origin, Part, Place, text::INTERVAL_95};
use crate::benchmark::{Benchmark, Benchmarks};

/// Columns of comparisons that are no remedies.
const BASELINES: [&str; 2] = ["stock", "ideal"];
/// The key that makes a row one of a comparison.
const RATIO: &str = "throughput_ratio_to_stock";
/// Settings of a scenario that a row's other keys say.
const SAID: [&str; 5] = [
    "vm.count",
    "vm.vcpus",
    "vm.pv_page",
    "host.ple_window",
    "host.ple_window_fixed",
];

/// All of them.
///
/// # Errors
/// None today; as the other readers.
pub(super) fn entries(benchmarks: &Benchmarks) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (name, benchmark) in benchmarks.all() {
        let rows = benchmark.rows().iter().enumerate();
        entries.extend(rows.filter_map(|(place, row)| entry(name, benchmark, place, row)));
    }
    Ok(entries)
}

fn entry(
    name: &str,
    benchmark: &Benchmark,
    place: usize,
    row: &Map<String, Value>,
) -> Option<Entry> {
    let text = |key: &str| row.get(key).and_then(Value::as_str);
    let number = |key: &str| row.get(key).and_then(Value::as_f64);
    let (policy, shape) = (text("policy")?, text("shape")?);
    if BASELINES.contains(&policy) || !row.contains_key(RATIO) {
        return None;
    }
    let ratio = number(RATIO).or_else(|| of_one_seed(benchmark, row))?;
    let replay = Replay::of(text("replay").unwrap_or_default());
    let low = number("throughput_ratio_to_stock_low");
    Some(Entry {
        place: Place {
            part: part(benchmark, row),
            load: load(row, &replay)?,
            shape: shape.to_owned(),
            overcommit: number("overcommit"),
            setting: setting(row, &replay),
        },
        remedy: match replay.only_vms {
            true => format!("{policy} (VMs only)"),
            false => policy.to_owned(),
        },
        baseline: "stock".to_owned(),
        ratio,
        interval: low.zip(number("throughput_ratio_to_stock_high")),
        interval_is: INTERVAL_95.to_owned(),
        pairs: row.get("pairs").and_then(Value::as_u64),
        origin: Origin {
            benchmark: name.to_owned(),
            line: place + 1,
            commit: text("commit").unwrap_or(&benchmark.commit).to_owned(),
            date: benchmark.date.clone(),
        },
        stale: String::new(),
    })
}

/// A comparison of the lab with one seed has rates and no ratio: the one rate over stock's of the same cell.
fn of_one_seed(benchmark: &Benchmark, row: &Map<String, Value>) -> Option<f64> {
    let rate = |row: &Map<String, Value>| row.get("operations_per_second")?.as_f64();
    let is_stock = |other: &&Map<String, Value>| {
        let same = ["cell", "table", "shape", "stock_sha256"];
        other.get("policy").is_some_and(|policy| policy == "stock")
            && same.iter().all(|key| other.get(*key) == row.get(*key))
    };
    let stock = rate(benchmark.rows().iter().find(is_stock)?)?;
    (stock > 0.0).then_some(rate(row)? / stock)
}

fn part(benchmark: &Benchmark, row: &Map<String, Value>) -> Part {
    match (
        benchmark.machine.starts_with("lab"),
        row.contains_key("load"),
    ) {
        (true, _) => Part::LabPolicies,
        (false, true) => Part::KvmLinux,
        (false, false) => Part::KvmMicro,
    }
}

/// What the VMs do: the load of Linux guests, else the lock, with the scenario's name where that says something else.
fn load(row: &Map<String, Value>, replay: &Replay) -> Option<String> {
    let text = |key: &str| row.get(key).and_then(Value::as_str);
    if let Some(load) = text("load").or(text("scenario")) {
        return Some(load.to_owned());
    }
    let lock = text("lock")?;
    Some(match &replay.scenario {
        Some(scenario) if !scenario.contains(lock) => format!("{scenario}: {lock}"),
        _ => lock.to_owned(),
    })
}

fn setting(row: &Map<String, Value>, replay: &Replay) -> String {
    let mut words: Vec<String> = Vec::new();
    if let Some(window) = row.get("ple_window").and_then(Value::as_u64) {
        words.push(format!("window {window}"));
    }
    if replay.set("host.ple_window_fixed") == Some("false") {
        words.push("grows".to_owned());
    }
    match row.get("pv_page").and_then(Value::as_bool) {
        Some(true) => words.push("pv page".to_owned()),
        Some(false) => words.push("silent".to_owned()),
        None => {}
    }
    for (key, value) in &replay.sets {
        if !SAID.contains(&key.as_str()) {
            words.push(format!("{key}={value}"));
        }
    }
    if let Some(cell) = row.get("cell").and_then(Value::as_str) {
        words.push(format!("cell {cell}"));
    }
    if let Some(features) = row.get("features").and_then(Value::as_str) {
        words.push(format!("features {}", features.replace(',', ", ")));
    }
    words.join(", ")
}

/// What a row's command says that no key of it does.
#[derive(Debug, Default, PartialEq)]
struct Replay {
    /// The scenario's name.
    scenario: Option<String>,
    /// What `--set` said.
    sets: BTreeMap<String, String>,
    only_vms: bool,
}

impl Replay {
    fn of(command: &str) -> Replay {
        let mut replay = Replay::default();
        let mut words = command.split_whitespace();
        while let Some(word) = words.next() {
            if word == "--only-vms" {
                replay.only_vms = true;
            } else if word == "--set" {
                let set = words.next().and_then(|set| set.split_once('='));
                let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
                replay.sets.extend(set);
            } else if let Some(path) = word.strip_suffix(".toml") {
                let name = path.rsplit('/').next().unwrap_or(path);
                replay.scenario = Some(name.to_owned());
            }
        }
        replay
    }

    fn set(&self, key: &str) -> Option<&str> {
        self.sets.get(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_what_keys_do_not() {
        let replay = Replay::of(
            "unspin testbed run -- unspin compare scenarios/shootdown.toml --set vm.count=2 --set host.ple_gap=1 --only-vms",
        );
        assert_eq!(replay.scenario.as_deref(), Some("shootdown"));
        assert_eq!(replay.set("host.ple_gap"), Some("1"));
        assert!(replay.only_vms);
        assert_eq!(Replay::of(""), Replay::default());
        assert_eq!(Replay::of("x --set"), Replay::default());
    }
}
