// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of docs/libunspin.md, cell by cell, and the statements below it: what the page says is what is observed.

use std::{collections::BTreeMap, fs, path::PathBuf};

use crate::tree::{Installed, Linked, root, succeed};

/// The table: a lock's cells by the head of their column.
fn table() -> BTreeMap<String, BTreeMap<String, String>> {
    let page = fs::read_to_string(root().join("docs/libunspin.md")).expect("the page");
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = page.lines().skip_while(|line| !line.starts_with("| lock "));
    let head = cells(lines.next().expect("the table"));
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        let row: BTreeMap<String, String> = head.iter().cloned().zip(cells(line)).collect();
        (row["lock"].trim_matches('`').to_owned(), row)
    })
    .collect()
}

/// What must be observed of a lock, by property; what is not promised is left out.
fn expected(row: &BTreeMap<String, String>) -> BTreeMap<&'static str, String> {
    let cell = |name: &str| row[name].clone();
    let sleeps = cell("a waiter") == "sleeps";
    let mut expected = BTreeMap::from([
        ("bytes", cell("bytes").replace(',', "")),
        ("constant", "as init".to_owned()),
        ("waiter", cell("a waiter")),
        ("stalled waiter", cell("a waiter that does not run")),
        ("another thread unlocks", cell("another thread may unlock")),
        ("recursion", "waits".to_owned()),
        ("dead holder", "stays held".to_owned()),
        ("fork", "as it was".to_owned()),
        ("signals", "change nothing".to_owned()),
    ]);
    if cell("lock") == "`linux_mutex`" {
        expected.insert("recursion", "ends the program".to_owned());
    }
    match cell("order").as_str() {
        "first come, first served" | "queue" => expected.insert("order", "in order".to_owned()),
        "none" => expected.insert("order", "out of order".to_owned()),
        // By ticket: who has waited for long competes, in whatever order.
        other => {
            assert!(other.starts_with("by ticket"), "{other}");
            None
        }
    };
    if cell("newcomers") != "pass it later" {
        expected.insert("newcomers", cell("newcomers"));
    }
    if cell("in a signal handler") == "yes" {
        expected.insert("in a handler", "yes".to_owned());
    }
    if cell("between processes") == "yes" {
        expected.insert("between processes", "yes".to_owned());
    }
    if sleeps {
        // Its sleepers are woken by their own process only.
        assert_eq!(cell("between processes"), "no");
        expected.insert("between processes", "no".to_owned());
        let places = if cell("lock") == "`mutex`" {
            "not needed"
        } else {
            "given back"
        };
        expected.insert("places to sleep", places.to_owned());
    }
    expected
}

/// The program that observes.
fn observer(installed: &Installed) -> PathBuf {
    let tests = root().join("lib/tests");
    let sources: Vec<PathBuf> = ["properties", "waiting", "holders", "processes", "signals"]
        .map(|name| tests.join(name).with_extension("c"))
        .to_vec();
    installed.compile(
        "clang-19",
        "-std=gnu11 -D_GNU_SOURCE -O1",
        &sources,
        Linked::Shared,
    )
}

#[test]
fn every_lock_is_what_the_page_says() {
    let installed = Installed::new();
    let observer = observer(&installed);
    let table = table();
    assert_eq!(table.len(), 13, "{:?}", table.keys());
    let mut wrong = Vec::new();
    let mut unknown_inheritance = false;
    for (lock, row) in &table {
        let expected = expected(row);
        let mut command = installed.command(&observer);
        command
            .arg(lock)
            .args(expected.keys())
            .arg("priority inheritance");
        if lock == "linux_mutex" {
            command.arg("sleeps of a waiter");
        }
        let observed = succeed(&mut command);
        let observed: BTreeMap<&str, &str> = observed
            .lines()
            .filter_map(|line| line.split_once(": "))
            .collect();
        for (property, value) in &expected {
            let seen = observed.get(property).copied().unwrap_or("nothing");
            if seen != value {
                wrong.push(format!(
                    "{lock}: {property}: the page says {value}, seen was {seen}"
                ));
            }
        }
        if let Some(sleeps) = observed.get("sleeps of a waiter") {
            let sleeps: u32 = sleeps.parse().expect("a number");
            // Once to begin with, and after each of 16 wake-ups in vain (locks/mutex.h).
            if sleeps > 17 {
                wrong.push(format!("{lock}: a waiter slept {sleeps} times"));
            }
        }
        match observed["priority inheritance"] {
            "none" => {}
            "not known here" => unknown_inheritance = true,
            other => wrong.push(format!("{lock}: priority inheritance: {other}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if unknown_inheritance {
        println!(
            "SKIPPED: priority inheritance, which needs two CPUs and the right to real-time priorities (root)"
        );
    }
}

/// The same sizes and waits are in the man pages.
#[test]
fn man_pages_say_the_same_sizes() {
    let man = root().join("lib/man");
    let pages: String = fs::read_dir(man)
        .expect("a folder")
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a page"))
        .collect();
    for (lock, row) in table() {
        let line = format!(".BR {lock} \" (\" {} \" bytes)\"", row["bytes"]);
        assert!(pages.contains(&line), "no page has {line}");
    }
}
