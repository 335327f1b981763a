// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask rebuilds`: what is compiled again, and for how long, after a line is added to one file. In a copy of the tree with a
//! build of its own; the rows are those of benchmarks/rebuilds.

use std::{fs::File, io::Write, path::Path, time::Instant};

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::tree_copy::{self, TreeCopy};

/// How often each is measured.
const RUNS: u32 = 3;

/// What is changed: its name, a file, a line that is new each time (`@` becomes a number).
const EDITS: [(&str, &str, &str); 4] = [
    (
        "a table of a command",
        "crates/cli/src/commands/compare/tables.rs",
        "#[allow(dead_code)]\nconst REBUILD: u32 = @;\n",
    ),
    (
        "a rule of the policies",
        "policy/steering/slice.h",
        "#define UNSPIN_REBUILD_POLICY @\n",
    ),
    (
        "a part of the scheduler",
        "bpf/scheduler/queues.bpf.h",
        "#define UNSPIN_REBUILD_SCHEDULER @\n",
    ),
    (
        "the lab's engine",
        "crates/lab/src/random.rs",
        "#[allow(dead_code)]\nconst REBUILD: u32 = @;\n",
    ),
];

/// What is run then: all crates are checked, or the program is built.
const COMMANDS: [(&str, &[&str]); 2] = [
    ("cargo check", &["check", "--locked"]),
    (
        "cargo build -p unspin",
        &["build", "--locked", "-p", "unspin"],
    ),
];

#[derive(Serialize)]
struct Row {
    edit: &'static str,
    file: &'static str,
    command: &'static str,
    run: u32,
    seconds: f64,
    /// Crates that were compiled, in cargo's order.
    crates: Vec<String>,
}

#[derive(Serialize)]
struct Document {
    rows: Vec<Row>,
}

/// Prints the rows as JSON; says each on standard error when it is there.
///
/// # Errors
/// A build that fails; a file that is no longer there.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let copy = TreeCopy::make(root, "target/rebuilds")?;
    for (name, words) in COMMANDS {
        eprintln!("{name}: the first one, which compiles everything");
        build(&copy, words)?;
    }
    let mut rows = Vec::new();
    for run in 1..=RUNS {
        for (edit, file, line) in EDITS {
            add_line(&copy.tree.join(file), &line.replace('@', &run.to_string()))?;
            for (command, words) in COMMANDS {
                let begin = Instant::now();
                let crates = build(&copy, words)?;
                let seconds = begin.elapsed().as_secs_f64();
                eprintln!("{seconds:6.1} s  {edit}, {command}: {}", crates.join(" "));
                ensure!(!crates.is_empty(), "{file}: nothing depends on it");
                rows.push(Row {
                    edit,
                    file,
                    command,
                    run,
                    seconds: (seconds * 10.0).round() / 10.0,
                    crates,
                });
            }
        }
    }
    println!("{}", serde_json::to_string(&Document { rows })?);
    Ok(())
}

/// The line takes the place of the one that an earlier run added, or is the first of its kind: the file's end.
fn add_line(path: &Path, line: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    let own = line.trim_end_matches(|last: char| last != ' ').trim_end();
    let text = text.split(own).next().unwrap_or_default();
    File::create(path)?.write_all(format!("{text}{line}").as_bytes())?;
    Ok(())
}

/// The crates that cargo compiled.
fn build(copy: &TreeCopy, words: &[&str]) -> anyhow::Result<Vec<String>> {
    let output = copy
        .command(tree_copy::cargo())
        .args(words)
        .output()
        .context("cargo does not run")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo {}: {said}", words.join(" "));
    Ok(compiled(&said))
}

/// The crates of cargo's lines "Compiling NAME v1.2.3" and "Checking NAME v1.2.3".
fn compiled(said: &str) -> Vec<String> {
    let names = said.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let verb = words.next()?;
        let name = words.next()?;
        matches!(verb, "Compiling" | "Checking").then(|| name.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_lines_name_what_was_compiled() {
        let said = "   Compiling unspin-lab v0.1.0 (/somewhere)\n    Checking unspin v0.1.0 (/somewhere)\n\
                    warning: x\n    Finished `dev` profile\n";
        assert_eq!(compiled(said), ["unspin-lab", "unspin"]);
    }

    #[test]
    fn a_line_takes_the_place_of_the_last_runs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.h");
        std::fs::write(&file, "int a;\n").unwrap();
        for (_, _, line) in EDITS {
            std::fs::write(&file, "int a;\n").unwrap();
            add_line(&file, &line.replace('@', "1")).unwrap();
            add_line(&file, &line.replace('@', "2")).unwrap();
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(text, format!("int a;\n{}", line.replace('@', "2")));
        }
    }
}
