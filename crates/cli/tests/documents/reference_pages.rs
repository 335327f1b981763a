// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of docs/reference say what the binary says of itself. `make docs` writes them anew.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::common::{UNSPIN, repository, unspin};

fn check(page: &str, command: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(page);
    let printed = unspin(command).out;
    if std::env::var_os("UNSPIN_WRITE_REFERENCE").is_some() {
        fs::write(&path, &printed).expect("the page can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == printed,
        "docs/reference/{page} is not what `unspin {}` prints: run make docs",
        command.join(" ")
    );
}

#[test]
fn commands() {
    check("commands.md", &["help", "--markdown"]);
}

#[test]
fn scenario() {
    check("scenario.md", &["scenario", "schema", "--markdown"]);
}

#[test]
fn configuration() {
    check("configuration.md", &["config", "default", "--markdown"]);
}

#[test]
fn json() {
    check("json.md", &["help", "--tables", "--markdown"]);
}

/// Tables and keys of `--json` with their types, a line a table, below the version of the format.
fn keys() -> (u64, BTreeMap<String, Vec<String>>) {
    let printed: Value = serde_json::from_str(&unspin(&["help", "--tables"]).out).expect("JSON");
    let mut tables = BTreeMap::new();
    for table in printed["tables"].as_array().expect("tables") {
        let properties = table["row"]["properties"].as_object().expect("keys");
        let keys = properties.iter().map(|(key, property)| {
            let kind = property["type"].to_string();
            format!(
                "{key}:{}",
                kind.replace(['[', ']', '"'], "").replace(',', "|")
            )
        });
        let keys: Vec<String> = keys.collect();
        for command in table["commands"].as_array().expect("commands") {
            let name = format!("{}/{}", text(command), text(&table["table"]));
            tables.insert(name.replace(' ', "-"), keys.clone());
        }
    }
    let version = printed["format_version"].as_u64().expect("a version");
    (version, tables)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// A key that goes or changes breaks whoever reads it, so the version rises with it. `make docs` writes what was added.
#[test]
fn a_key_goes_only_with_a_new_version() {
    let (version, now) = keys();
    let mut lines = vec![format!("format_version {version}")];
    lines.extend(
        now.iter()
            .map(|(table, keys)| format!("{table} {}", keys.join(" "))),
    );
    let path = repository().join("crates/cli/tests/documents/json_keys.txt");
    let golden = fs::read_to_string(&path).unwrap_or_default();
    if golden.starts_with(&format!("format_version {version}\n")) {
        for line in golden.lines().skip(1) {
            let mut words = line.split(' ');
            let table = words.next().unwrap_or_default();
            let there = now.get(table);
            for key in words {
                assert!(
                    there.is_some_and(|keys| keys.iter().any(|there| there == key)),
                    "{table}: {key} went or changed: raise FORMAT_VERSION in crates/report/src/document.rs, and say so in \
                     CHANGELOG.md"
                );
            }
        }
    }
    let written = lines.join("\n") + "\n";
    if std::env::var_os("UNSPIN_WRITE_REFERENCE").is_some() {
        fs::write(&path, &written).expect("it can be written");
        return;
    }
    assert!(golden == written, "{}: run make docs", path.display());
}

#[test]
fn man_pages_completions_and_help_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let man = folder.path().join("man");
    let ended = unspin(&["help", "--man", &man.to_string_lossy()]);
    assert_eq!((ended.status, ended.out.as_str()), (0, ""), "{ended:#?}");
    let page = fs::read_to_string(man.join("unspin-lab-compare.1")).expect("a page");
    assert!(page.contains(".TH") && page.contains("policy"), "{page}");
    for (shell, piece) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef unspin"),
        ("fish", "complete -c unspin"),
    ] {
        assert!(
            unspin(&["completions", shell]).out.contains(piece),
            "{shell}"
        );
    }
    unspin(&["completions", "tcsh"]).refused(2, &["tcsh"]);
    unspin(&["help", "lab", "sing"]).refused(2, &["no command `sing`", "compare"]);
    assert!(unspin(&["help", "lab", "compare"]).out.contains("--seeds"));
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    for command in [
        &["policy", "list"][..],
        &["help", "--markdown"],
        &["scenario", "schema"],
    ] {
        let mut child = Command::new(UNSPIN)
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
        assert!(
            [Some(0), Some(141)].contains(&output.status.code()),
            "{command:?}"
        );
    }
}
