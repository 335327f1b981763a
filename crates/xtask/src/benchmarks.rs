// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask benchmark WHAT` repeats a measurement of benchmarks/; `cargo xtask performance` writes docs/performance.md from
//! all of them. A measurement is a folder: `benchmark.toml` (what, command, machine, date, commit, claims) and `rows.jsonl`
//! (its rows, as the command's `--json` prints them).

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::{papers, repository};

const FOLDER: &str = "benchmarks";
const PAGE: &str = "docs/performance.md";

/// benchmark.toml
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Benchmark {
    title: String,
    /// For a shell at the top of the tree; empty: the tool that took it is gone.
    command: String,
    machine: String,
    date: String,
    /// Empty: several builds, or not noted.
    commit: String,
    #[serde(default, rename = "claim")]
    claims: Vec<Claim>,
}

/// One line of docs/performance.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    text: String,
    figure: String,
    /// 95 %.
    #[serde(default)]
    interval: String,
    #[serde(default)]
    goal: String,
    /// Whether the figure reaches the goal; absent where there is none.
    met: Option<Met>,
    /// The test that fails when the figure no longer holds; empty: none does.
    #[serde(default)]
    check: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Met {
    Met,
    Missed,
}

/// Writes docs/performance.md, or (`check`) fails when it is not what would be written.
///
/// # Errors
/// A benchmark.toml or rows.jsonl that cannot be read; an old page.
pub fn performance(root: &Path, check: bool) -> anyhow::Result<()> {
    let page = page(&all(root)?);
    let path = root.join(PAGE);
    if !check {
        return fs::write(&path, page).with_context(|| format!("cannot write {PAGE}"));
    }
    ensure!(
        fs::read_to_string(&path).unwrap_or_default() == page,
        "{PAGE} is not what benchmarks/ says: run make docs"
    );
    Ok(())
}

/// Runs the command of one measurement, and keeps its rows when it prints JSON; what it writes to standard error is shown. The
/// pages that are made of rows are written anew.
///
/// # Errors
/// No such measurement (the message lists them), a command that fails.
pub fn repeat(root: &Path, what: &str) -> anyhow::Result<()> {
    let all = all(root)?;
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let Some((_, benchmark)) = all.iter().find(|(name, _)| name == what) else {
        bail!(
            "there is no benchmark {what:?}; there are {}",
            names.join(", ")
        );
    };
    ensure!(
        !benchmark.command.is_empty(),
        "{what}: the tool that took it is gone"
    );
    eprintln!("{}", benchmark.command);
    let path = format!(
        "{}:{}",
        root.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("bash")
        .args(["-c", &benchmark.command])
        .current_dir(root)
        .env("PATH", path)
        .stderr(Stdio::inherit())
        .output()
        .context("bash does not run")?;
    ensure!(output.status.success(), "{what}: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let Ok(document) = serde_json::from_str::<serde_json::Value>(&text) else {
        print!("{text}");
        eprintln!("{what}: no JSON, so its rows.jsonl stays; compare by hand");
        return Ok(());
    };
    let folder = root.join(FOLDER).join(what);
    let mut rows = String::new();
    for row in document["rows"].as_array().into_iter().flatten() {
        writeln!(rows, "{row}")?;
    }
    fs::write(folder.join("rows.jsonl"), rows)?;
    stamp(
        &folder.join("benchmark.toml"),
        &repository::commit_but_for(root, &["benchmarks"])?,
    )?;
    performance(root, false)?;
    papers::write(root, false)?;
    eprintln!("{what}: rows.jsonl is new; look at the claims of benchmark.toml, then make docs");
    Ok(())
}

/// Puts today's date and the commit into a benchmark.toml, whose comments stay.
fn stamp(path: &Path, commit: &str) -> anyhow::Result<()> {
    let today = Command::new("date").args(["-u", "+%Y-%m-%d"]).output()?;
    let today = String::from_utf8(today.stdout)?;
    let text = fs::read_to_string(path)?;
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some(("date", _)) => format!("date = \"{}\"\n", today.trim()),
        Some(("commit", _)) => format!("commit = \"{commit}\"\n"),
        _ => format!("{line}\n"),
    });
    Ok(fs::write(path, lines.collect::<String>())?)
}

/// Every measurement, by name; every row of theirs is JSON.
fn all(root: &Path) -> anyhow::Result<Vec<(String, Benchmark)>> {
    let folders = fs::read_dir(root.join(FOLDER)).with_context(|| format!("no {FOLDER}/"))?;
    let mut folders: Vec<PathBuf> = folders
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders.iter().map(|folder| read(folder)).collect()
}

fn read(folder: &Path) -> anyhow::Result<(String, Benchmark)> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let text = fs::read_to_string(folder.join("benchmark.toml"))
        .with_context(|| format!("{name}: no benchmark.toml"))?;
    let benchmark: Benchmark =
        toml::from_str(&text).with_context(|| format!("{name}/benchmark.toml"))?;
    for claim in &benchmark.claims {
        ensure!(
            claim.met.is_some() != claim.goal.is_empty(),
            "{name}: {:?} needs both goal and met, or neither",
            claim.text
        );
    }
    let rows = fs::read_to_string(folder.join("rows.jsonl")).unwrap_or_default();
    for (number, row) in rows.lines().enumerate() {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(row)
            .with_context(|| format!("{name}/rows.jsonl:{}", number + 1))?;
    }
    Ok((name.into_owned(), benchmark))
}

/// The page: what was missed, what was met, what has no goal; then how each was taken. Writing to a string does not fail.
fn page(all: &[(String, Benchmark)]) -> String {
    let mut out = String::from(
        "# Performance\n\nWritten from `benchmarks/` by `make docs`; lint fails while it says something else. How anything is \
         measured: [method](method.md). What the misses mean: [known issues](known-issues.md).\n",
    );
    for (heading, met) in [
        ("Missed", Some(Met::Missed)),
        ("Met", Some(Met::Met)),
        ("Without a goal", None),
    ] {
        let _ = writeln!(
            out,
            "\n## {heading}\n\n| claim | | figure | 95 % interval | goal | enforced by |\n|---|---|---|---|---|---|"
        );
        for (name, benchmark) in all {
            for (number, claim) in benchmark
                .claims
                .iter()
                .enumerate()
                .filter(|(_, claim)| claim.met == met)
            {
                let _ = writeln!(
                    out,
                    "| {name}.{} | {} | {} | {} | {} | {} |",
                    number + 1,
                    claim.text,
                    claim.figure,
                    claim.interval,
                    claim.goal,
                    claim.check
                );
            }
        }
    }
    out.push_str("\n## How each was taken\n\n`make benchmarks WHAT=NAME` repeats one; its rows are `benchmarks/NAME/rows.jsonl`.\n");
    for (name, benchmark) in all {
        let commit = if benchmark.commit.is_empty() {
            "several builds"
        } else {
            &benchmark.commit
        };
        let _ = write!(
            out,
            "\n### {name}\n\n{}. {}, {commit}; {}.\n",
            benchmark.title, benchmark.date, benchmark.machine
        );
        if !benchmark.command.is_empty() {
            let _ = write!(out, "\n```\n{}\n```\n", benchmark.command);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn benchmark(claims: &str) -> Result<Benchmark, toml::de::Error> {
        let head =
            "title = \"t\"\ncommand = \"true\"\nmachine = \"m\"\ndate = \"d\"\ncommit = \"\"\n";
        toml::from_str(&format!("{head}{claims}"))
    }

    #[test]
    fn claims_stand_by_what_became_of_them() {
        let claims = "[[claim]]\ntext = \"a\"\nfigure = \"1\"\ngoal = \"2\"\nmet = \"missed\"\n\
                      [[claim]]\ntext = \"b\"\nfigure = \"3\"\n";
        let page = page(&[("x".to_owned(), benchmark(claims).unwrap())]);
        let missed = page
            .find("| x.1 | a | 1 |  | 2 |  |")
            .expect("the missed one");
        let free = page.find("| x.2 | b | 3 |").expect("the other");
        assert!(missed < page.find("## Met").unwrap() && free > page.find("## Without").unwrap());
    }

    #[test]
    fn what_is_no_benchmark_is_refused() {
        assert!(benchmark("colour = 1").is_err());
        assert!(benchmark("[[claim]]\ntext = \"a\"\nfigure = \"1\"\nmet = \"nearly\"\n").is_err());
        let folder = tempfile::tempdir().unwrap();
        let of = folder.path().join(FOLDER).join("x");
        fs::create_dir_all(&of).unwrap();
        let text =
            "title = \"t\"\ncommand = \"true\"\nmachine = \"m\"\ndate = \"d\"\ncommit = \"\"\n";
        fs::write(of.join("benchmark.toml"), text).unwrap();
        all(folder.path()).unwrap();
        fs::write(of.join("rows.jsonl"), "{}\nno\n").unwrap();
        let error = all(folder.path()).expect_err("a row that is none");
        assert!(format!("{error:#}").contains("rows.jsonl:2"), "{error:#}");
        assert!(repeat(folder.path(), "y").is_err());
    }
}
