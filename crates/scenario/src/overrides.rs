// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--set key=value` and the flags that are short for it: they override a scenario, they never complete one.

use std::fmt;

use toml::{Table, Value};

use crate::schema::has_key;

/// Overrides in the order given; a later one wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    entries: Vec<Entry>,
}

/// A `--set` that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--set {given}: {reason}")]
pub struct OverrideError {
    given: String,
    reason: String,
}

impl OverrideError {
    /// The key that it names, as it was given.
    pub fn key(&self) -> &str {
        let key = self.given.split_once('=').map(|(key, _)| key.trim());
        key.unwrap_or(&self.given)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    path: Vec<String>,
    value: String,
}

impl Overrides {
    /// Adds `key=value`, as in `seed=7`, `host.cpus=1`, `vm.vcpus=4` (every group) or `vm.0.lock=ticket` (the first).
    ///
    /// The value is TOML; what is no TOML is text, so that `duration=2s` needs no quotes. Whether the value is
    /// allowed is seen when the scenario is read.
    pub fn set(&mut self, given: &str) -> Result<(), OverrideError> {
        let error = |reason: &str| OverrideError {
            given: given.to_owned(),
            reason: reason.to_owned(),
        };
        let (key, value) = given
            .split_once('=')
            .ok_or_else(|| error("write key=value, as in vm.vcpus=4"))?;
        let path: Vec<String> = key.trim().split('.').map(str::to_owned).collect();
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let known = match parts[..] {
            [top] => has_key("", top) && !matches!(top, "host" | "lab" | "vm"),
            [table @ ("host" | "lab" | "vm"), key] => has_key(table, key),
            ["lab", "costs", name] => !name.is_empty(),
            ["vm", group, key] => group.parse::<usize>().is_ok() && has_key("vm", key),
            _ => false,
        };
        if !known {
            return Err(error(
                "there is no such key; there are seed, duration, iterations, warm_up, name, host.KEY, lab.KEY, vm.KEY \
                 and vm.GROUP.KEY (`unspin scenario schema` lists the keys)",
            ));
        }
        self.entries.push(Entry {
            path,
            value: value.trim().to_owned(),
        });
        Ok(())
    }

    /// Each as [`Overrides::set`] takes it, in order.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let entries = self.entries.iter();
        entries.map(|entry| format!("{}={}", entry.path.join("."), entry.value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// `text` with the overrides in it; text that is not TOML comes back as it is, for the parser to refuse.
    pub(crate) fn apply(&self, text: &str) -> String {
        let Ok(mut top) = text.parse::<Table>() else {
            return text.to_owned();
        };
        for entry in &self.entries {
            entry.apply(&mut top);
        }
        top.to_string()
    }
}

impl fmt::Display for Overrides {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.words().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            write!(out, "{blank}--set {word}")?;
        }
        Ok(())
    }
}

impl Entry {
    fn apply(&self, top: &mut Table) {
        let parts: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let value = value(&self.value);
        match parts[..] {
            [key] => {
                // A run ends by one of the two: giving one takes the other away, and what only fits that other.
                match key {
                    "iterations" => {
                        top.remove("duration");
                        top.remove("warm_up");
                    }
                    "duration" => {
                        top.remove("iterations");
                    }
                    _ => {}
                }
                top.insert(key.to_owned(), value);
            }
            [section @ ("host" | "lab"), key] => {
                if let Some(section) = table(top, section) {
                    section.insert(key.to_owned(), value);
                }
            }
            ["lab", "costs", name] => {
                if let Some(costs) = table(top, "lab").and_then(|lab| table(lab, "costs")) {
                    costs.insert(name.to_owned(), value);
                }
            }
            ["vm", key] => {
                for group in groups(top) {
                    group.insert(key.to_owned(), value.clone());
                }
            }
            ["vm", group, key] => {
                let index = group.parse::<usize>().unwrap_or(usize::MAX);
                if let Some(group) = groups(top).nth(index) {
                    group.insert(key.to_owned(), value);
                    return;
                }
                // No such group: leave a key that the parser refuses by the override's name.
                top.insert(format!("vm.{group}.{key}"), value);
            }
            _ => {}
        }
    }
}

/// The table of that name, made when there is none; `None`: it is something else.
fn table<'a>(of: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    let empty = || Value::Table(Table::new());
    of.entry(name).or_insert_with(empty).as_table_mut()
}

fn groups(top: &mut Table) -> impl Iterator<Item = &mut Table> {
    top.get_mut("vm")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_table_mut)
}

/// A value in TOML, or the text itself.
fn value(text: &str) -> Value {
    match format!("value = {text}").parse::<Table>() {
        Ok(mut table) if table.len() == 1 => table
            .remove("value")
            .unwrap_or_else(|| Value::String(text.to_owned())),
        _ => Value::String(text.to_owned()),
    }
}
