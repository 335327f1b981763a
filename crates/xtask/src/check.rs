// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask check NAME`: one check by its name, or by a part of it, wherever it runs: a unit test, one in the testbed, a
//! long one.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// The test target's name; for a library's or binary's own tests the crate's.
    pub name: String,
    /// Its package's name.
    pub package: String,
    /// The binary, as `cargo test` has built it.
    pub binary: PathBuf,
    /// Of its package; tests run there.
    pub folder: PathBuf,
    /// Whether its checks run in the testbed and are chosen by UNSPIN_CHECKS.
    pub in_testbed: bool,
}

/// Runs every check whose name is `name`, or, if there is none, contains it.
///
/// # Errors
/// No such check (the message names near ones), too many of them, a check that fails.
pub fn run(root: &Path, name: &str) -> anyhow::Result<()> {
    ensure!(!name.is_empty(), "which? As in make check NAME=loan");
    let mut known: BTreeMap<String, Program> = BTreeMap::new();
    for program in programs(root)? {
        let in_testbed = checks_in_testbed(&program)?;
        let of_both = [(false, tests_of(&program)?), (true, in_testbed)];
        for (in_testbed, checks) in of_both {
            let program = Program {
                in_testbed,
                ..program.clone()
            };
            known.extend(checks.into_iter().map(|check| (check, program.clone())));
        }
    }
    let chosen = choose(name, known.keys().map(String::as_str))?;
    for check in chosen {
        let program = &known[check];
        eprintln!("{check}: {}", program.binary.display());
        let mut command = Command::new(&program.binary);
        command.current_dir(&program.folder).env("UNSPIN_E2E", "1");
        if program.in_testbed {
            command
                .env("UNSPIN_CHECKS", check)
                .env("UNSPIN_CHECKS_LIVE", "1");
        } else {
            command.args([check, "--exact", "--nocapture", "--include-ignored"]);
        }
        let status = command.status().context("the test program does not run")?;
        ensure!(status.success(), "{check} failed");
    }
    Ok(())
}

/// The checks that `name` means.
fn choose<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> anyhow::Result<Vec<&'a str>> {
    let last = |check: &str| check.rsplit("::").next() == Some(name);
    for fits in [
        &(|check: &str| check == name) as &dyn Fn(&str) -> bool,
        &last,
        &|check| check.contains(name),
    ] {
        let found: Vec<&str> = known.clone().filter(|check| fits(check)).collect();
        match found.len() {
            0 => {}
            1..=20 => return Ok(found),
            many => bail!(
                "{many} checks contain {name:?}: {}, ...",
                found[..20].join(", ")
            ),
        }
    }
    let mut near: Vec<(usize, &str)> = known
        .map(|check| {
            (
                strsim::osa_distance(name, check.rsplit("::").next().unwrap_or(check)),
                check,
            )
        })
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near.iter().take(5).map(|(_, check)| *check).collect();
    bail!("there is no check {name:?}; near it: {}", near.join(", "))
}

/// Every test program of the workspace, built.
///
/// # Errors
/// When they do not compile.
pub fn programs(root: &Path) -> anyhow::Result<Vec<Program>> {
    let output = Command::new("cargo")
        .args([
            "test",
            "--workspace",
            "--locked",
            "--no-run",
            "--message-format=json",
        ])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not run")?;
    ensure!(output.status.success(), "the tests do not compile");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(program_of).collect())
}

/// The test program that one of cargo's messages is about.
fn program_of(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    // "path+file:///tree/crates/vmm#unspin-vmm@0.1.0", and without the name where the folder is called like the package.
    let id = message["package_id"].as_str()?;
    let (folder, tail) = id.rsplit_once('#')?;
    let package = match tail.split_once('@') {
        Some((name, _)) => name,
        None => folder.rsplit('/').next()?,
    };
    Some(Program {
        package: package.to_owned(),
        name: message["target"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        binary: message["executable"].as_str()?.into(),
        folder: manifest.parent()?.into(),
        in_testbed: false,
    })
}

/// What a program prints when it is asked so.
fn asked(program: &Program, argument: &str) -> anyhow::Result<(bool, String)> {
    let output = Command::new(&program.binary)
        .arg(argument)
        .current_dir(&program.folder)
        .env_remove("UNSPIN_CHECKS")
        .stderr(Stdio::null())
        .output()
        .with_context(|| format!("{} does not run", program.binary.display()))?;
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    ))
}

/// Names of a program's tests.
///
/// # Errors
/// When it does not run.
pub fn tests_of(program: &Program) -> anyhow::Result<Vec<String>> {
    let (_, listed) = asked(program, "--list")?;
    let tests = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    Ok(tests.map(str::to_owned).collect())
}

/// Names of the checks that it runs in the testbed (`unspin_testbed::self_test`); other programs refuse the question.
fn checks_in_testbed(program: &Program) -> anyhow::Result<Vec<String>> {
    let (knows, listed) = asked(program, "--list-checks")?;
    let checks = listed.lines().map(str::to_owned);
    Ok(if knows { checks.collect() } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_itself_then_what_contains_it() {
        let known = ["a::loan", "b::a_loan_drains", "loan", "weights"];
        let of = |name: &str| choose(name, known.into_iter()).map(|found| found.join(" "));
        assert_eq!(of("loan").unwrap(), "loan");
        assert_eq!(of("a_loan_drains").unwrap(), "b::a_loan_drains");
        assert_eq!(of("eight").unwrap(), "weights");
        let error = of("wieghts").unwrap_err().to_string();
        assert!(error.contains("near it: weights"), "{error}");
    }

    #[test]
    fn other_messages_of_cargo_are_no_programs() {
        let message = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///a#unspin-a@0.1.0","profile":{{"test":{test}}},"manifest_path":"/a/Cargo.toml","executable":"/a/t"}}"#
            )
        };
        let program = program_of(&message(true)).unwrap();
        assert_eq!(
            (program.folder.as_path(), program.package.as_str()),
            (Path::new("/a"), "unspin-a")
        );
        assert_eq!(program_of(&message(false)), None);
        assert_eq!(program_of("{}"), None);
    }
}
