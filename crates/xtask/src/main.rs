// SPDX-License-Identifier: MIT OR Apache-2.0
//! What maintainers run beside the build: `cargo xtask COMMAND`.

mod benchmarks;
mod bugs;
mod check;
mod house;
mod long;
mod mutants;
mod references;
mod repository;
mod results;
mod suites;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

/// Tasks for maintainers of unspin.
#[derive(Parser)]
#[command(name = "xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Plant each seeded bug of tests/mutants/ in a copy of the tree, and check that its test finds it
    Mutants {
        /// Names of seeded bugs; all of them when none is given
        names: Vec<String>,
        /// Only check that each bug can be planted: its text stands exactly once in its file
        #[arg(long)]
        check: bool,
    },
    /// Check that every ruling, claim, file and link that the tree cites exists
    References,
    /// Check sizes and names of sources, and that modules, headers and rooms do not use each other in circles
    House {
        /// Only print what breaks a rule
        #[arg(long)]
        report: bool,
    },
    /// Run one check by its name, or by a part of it, wherever it runs
    Check {
        /// As the test is called, or a part of that
        name: String,
    },
    /// Run the long checks, and keep what became of each in tests/long/results.tsv
    Long {
        /// Parts of their names; all of them when none is given
        names: Vec<String>,
    },
    /// Run the suites of `make test`
    Test {
        /// Names of suites; all of them when none is given
        suites: Vec<String>,
        /// The program cargo-nextest (setup/nextest)
        #[arg(long)]
        nextest: PathBuf,
    },
    /// Repeat a measurement of benchmarks/
    Benchmark {
        /// Its folder's name
        what: String,
    },
    /// Write docs/performance.md from benchmarks/
    Performance {
        /// Only check that it says what benchmarks/ says
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    let root = repository::root()?;
    match task {
        Task::Mutants { names, check: true } => mutants::check(&root, &names),
        Task::Mutants { names, .. } => mutants::run(&root, &names),
        Task::House { report } => house::check(&root, &repository::files(&root)?, report),
        Task::Check { name } => check::run(&root, &name),
        Task::Long { names } => long::run(&root, &names),
        Task::Test { suites, nextest } => suites::run(&root, &nextest, &suites),
        Task::Benchmark { what } => benchmarks::repeat(&root, &what),
        Task::Performance { check } => benchmarks::performance(&root, check),
        Task::References => references::check(&root, &repository::files(&root)?),
    }
}
