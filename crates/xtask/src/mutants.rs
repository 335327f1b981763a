// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask mutants`: each seeded bug is planted in a copy of the tree, and its test must fail there.
//!
//! Every such test must pass on the tree as it is. A bug that can no longer be planted or does not build fails the run: it
//! tests nothing any more. The copy keeps its place below `target/`, so that a second run compiles little. Tests that boot the
//! testbed need what `make setup` puts into the cache. Results are kept in tests/mutants/results.tsv.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, bail, ensure};

use crate::{
    bugs::{self, Bug},
    check::{self, Program},
    limit, repository,
    results::{self, Results},
    sitting::Sitting,
    tree_copy::{self, TreeCopy},
};

/// How long a test may take to compile.
const BUILD_LIMIT_SECONDS: u64 = 1500;

const HEAD: &str =
    "# SPDX-License-Identifier: MIT OR Apache-2.0\n# Each seeded bug's last run: `make mutants`.";

/// Checks that every bug can be planted, in memory only.
///
/// # Errors
/// When one cannot.
pub fn check(root: &Path, names: &[String]) -> anyhow::Result<()> {
    let bugs = bugs::read(root, names)?;
    let tree = tempfile::tempdir()?;
    let mut wrong = 0;
    for bug in &bugs {
        for file in bug.files() {
            let copy = tree.path().join(file);
            fs::create_dir_all(copy.parent().unwrap_or(tree.path()))?;
            // An absent file is said by plant().
            let _ = fs::copy(root.join(file), copy);
        }
        if let Err(error) = bug.plant(tree.path()) {
            println!("{}: {error}", bug.name);
            wrong += 1;
        }
    }
    ensure!(wrong == 0, "{wrong} seeded bugs cannot be planted");
    println!("{} seeded bugs can be planted", bugs.len());
    Ok(())
}

/// Checks that each bug's test is there: a filter that fits none would run nothing, and a renamed one is found here before a
/// night of `make mutants`.
///
/// # Errors
/// When one is missing, or the tests do not compile.
pub fn check_tests(root: &Path) -> anyhow::Result<()> {
    let programs = check::programs(root)?;
    let mut listed: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    let mut missing = Vec::new();
    let bugs = bugs::read(root, &[])?;
    for bug in &bugs {
        let wanted = Wanted::of(&bug.test);
        let mut found = false;
        for program in programs.iter().filter(|program| wanted.is_in(program)) {
            if !listed.contains_key(&program.binary) {
                listed.insert(program.binary.clone(), check::tests_of(program)?);
            }
            let tests = &listed[&program.binary];
            found |= tests.iter().any(|test| test.contains(wanted.filter));
        }
        if !found {
            missing.push(format!("{}: cargo test {}", bug.name, bug.test));
        }
    }
    ensure!(
        missing.is_empty(),
        "no test is there for these seeded bugs:\n{}",
        missing.join("\n")
    );
    println!("{} seeded bugs have their tests", bugs.len());
    Ok(())
}

/// What `cargo test` is asked for: a package, one of its test programs, a part of tests' names.
struct Wanted<'a> {
    package: &'a str,
    /// The test target's name; `None`: the library's or the binary's own tests.
    target: Option<&'a str>,
    filter: &'a str,
}

impl Wanted<'_> {
    fn of(words: &str) -> Wanted<'_> {
        let mut wanted = Wanted {
            package: "",
            target: None,
            filter: "",
        };
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "-p" => wanted.package = words.next().unwrap_or_default(),
                "--test" => wanted.target = words.next(),
                // One binary a package, called like it.
                "--bin" => {
                    words.next();
                }
                "--" => break,
                word if word.starts_with("--") => {}
                word => wanted.filter = word,
            }
        }
        wanted
    }

    fn is_in(&self, program: &Program) -> bool {
        let own = self.package.replace('-', "_");
        program.package == self.package
            && match self.target {
                Some(target) => program.name == target,
                None => program.name.replace('-', "_") == own,
            }
    }
}

/// Plants bugs one after another: those of the sitting's names, all of them when there is none, but not what was found at this
/// very commit. A bug whose test fails without it is `broken`, too. No bug is planted after the sitting's end.
///
/// # Errors
/// When one survives or is broken, once all were tried; when the copy cannot be made.
pub fn run(root: &Path, sitting: &Sitting) -> anyhow::Result<()> {
    let all = bugs::read(root, &[])?;
    let mut results = Results::read(root.join(results::MUTANTS), HEAD)?;
    results.list(all.iter().map(|bug| bug.name.as_str()))?;
    let commit = repository::commit_but_for(root, &results::FILES)?;
    let asked = bugs::read(root, &sitting.names)?;
    let due = sitting.due(asked, |bug| &bug.name, &results, &commit);
    let copy = Copy::make(root)?;
    let began = Instant::now();

    let mut passes: BTreeMap<&str, bool> = BTreeMap::new();
    let (mut killed, mut others) = (0, 0);
    for bug in &due {
        if sitting.left(began).is_some_and(|left| left.is_zero()) {
            break;
        }
        let sound = match passes.get(bug.test.as_str()) {
            Some(sound) => *sound,
            None => {
                let same = all.iter().filter(|other| other.test == bug.test);
                let seconds = same.map(|other| other.seconds).max();
                eprintln!("without a bug: cargo test {}", bug.test);
                let outcome = copy.passes(&bug.test, seconds.unwrap_or(bug.seconds));
                if let Err(error) = &outcome {
                    eprintln!("{error:#}");
                }
                passes.insert(&bug.test, outcome.is_ok());
                outcome.is_ok()
            }
        };
        let begin = Instant::now();
        let outcome = if sound { copy.kills(bug)? } else { "broken" };
        eprintln!("{outcome:9} {}", bug.name);
        if outcome == "killed" {
            killed += 1;
        } else {
            eprintln!("          {}", bug.rule);
            others += 1;
        }
        results.set(&bug.name, outcome, begin.elapsed().as_secs(), &commit)?;
    }
    println!(
        "mutants: {killed} killed, {others} survived or broken, {} left for another sitting, {} s",
        due.len() - killed - others,
        began.elapsed().as_secs()
    );
    ensure!(others == 0, "{others} seeded bugs were not found");
    Ok(())
}

/// The copy of the tree in which bugs are planted.
struct Copy {
    root: PathBuf,
    log: PathBuf,
    tree: TreeCopy,
}

impl Copy {
    fn make(root: &Path) -> anyhow::Result<Copy> {
        let tree = TreeCopy::make(root, "target/mutants")?;
        // The last run's build of what bugs change may be a mutant's, and newer than the file.
        for bug in bugs::read(root, &[])? {
            for file in bug.files() {
                touch(&tree.tree.join(file));
            }
        }
        Ok(Copy {
            root: root.to_owned(),
            log: tree.work.join("log"),
            tree,
        })
    }

    /// The exit status of that `cargo test` in the copy; 124 and 137: it took longer.
    fn cargo_test(&self, words: &[&str], seconds: u64) -> anyhow::Result<i32> {
        let log = File::create(&self.log)?;
        let status = self
            .tree
            .command(limit::PROGRAM)
            .args(limit::arguments(Duration::from_secs(seconds)))
            .arg(tree_copy::cargo())
            .args(["test", "--locked"])
            .args(words)
            .env("UNSPIN_E2E", "1")
            .stderr(log.try_clone()?)
            .stdout(log)
            .status()
            .context("setpriv does not run")?;
        Ok(status.code().unwrap_or(137))
    }

    /// Compiles a test; what comes after the target's name chooses among its tests.
    fn build(&self, test: &str) -> anyhow::Result<bool> {
        let mut words = vec!["--no-run"];
        let mut rest = test.split_whitespace();
        while let Some(word) = rest.next() {
            match word {
                "-p" | "--test" | "--bin" => words.extend([word, rest.next().unwrap_or_default()]),
                _ if word.starts_with("--") => words.push(word),
                _ => {}
            }
        }
        Ok(self.cargo_test(&words, BUILD_LIMIT_SECONDS)? == 0)
    }

    fn test(&self, test: &str, seconds: u64) -> anyhow::Result<bool> {
        let words: Vec<&str> = test.split_whitespace().collect();
        Ok(self.cargo_test(&words, seconds)? == 0)
    }

    /// A test must pass without any bug, and be one.
    fn passes(&self, test: &str, seconds: u64) -> anyhow::Result<()> {
        let passed = self.build(test)? && self.test(test, seconds)?;
        let said = fs::read_to_string(&self.log)?;
        if !passed {
            let from = said.lines().count().saturating_sub(30);
            let last: Vec<&str> = said.lines().skip(from).collect();
            bail!(
                "cargo test {test} fails without any bug planted:\n{}",
                last.join("\n")
            );
        }
        let ran = said
            .lines()
            .filter_map(|line| line.strip_prefix("test result: ok. "));
        ensure!(
            ran.into_iter().any(|line| !line.starts_with("0 ")),
            "cargo test {test} runs no test at all"
        );
        Ok(())
    }

    /// `killed` when the bug's test fails with it.
    fn kills(&self, bug: &Bug) -> anyhow::Result<&'static str> {
        if let Err(error) = bug.plant(&self.tree.tree) {
            eprintln!("{}: {error}", bug.name);
            return Ok("broken");
        }
        let outcome = if !self.build(&bug.test)? {
            let said = fs::read_to_string(&self.log)?;
            let error = said.lines().find(|line| line.contains("error"));
            eprintln!("{} does not build: {}", bug.name, error.unwrap_or_default());
            "broken"
        } else if self.test(&bug.test, bug.seconds)? {
            "SURVIVED"
        } else {
            "killed"
        };
        for file in bug.files() {
            let planted = self.tree.tree.join(file);
            fs::copy(self.root.join(file), &planted)?;
            touch(&planted);
        }
        Ok(outcome)
    }
}

/// Gives a file the present date; one that is not there is said elsewhere.
fn touch(file: &Path) {
    if let Ok(file) = File::options().append(true).open(file) {
        let _ = file.set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bugs_test_is_looked_for_in_its_program() {
        let program = |package: &str, name: &str| Program {
            name: name.to_owned(),
            package: package.to_owned(),
            binary: PathBuf::new(),
            folder: PathBuf::new(),
            in_testbed: false,
        };
        let library = Wanted::of("-p unspin-vmm --lib machine::memory");
        assert_eq!(library.filter, "machine::memory");
        assert!(library.is_in(&program("unspin-vmm", "unspin_vmm")));
        assert!(!library.is_in(&program("unspin-vmm", "testbed_kvm")));
        assert!(!library.is_in(&program("unspin-lab", "unspin_lab")));
        let test = Wanted::of("-p unspin-lab --test worlds");
        assert_eq!(test.filter, "");
        assert!(test.is_in(&program("unspin-lab", "worlds")));
        let binary = Wanted::of("-p unspin --bin unspin testbed::policies -- --exact");
        assert_eq!(binary.filter, "testbed::policies");
        assert!(binary.is_in(&program("unspin", "unspin")));
    }
}
