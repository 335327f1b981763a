// SPDX-License-Identifier: MIT OR Apache-2.0
//! What maintainers run beside the build: `cargo xtask COMMAND`.

mod benchmarks;
mod bugs;
mod check;
mod failures;
mod house;
mod limit;
mod long;
mod mutants;
mod papers;
mod rebuilds;
mod references;
mod repository;
mod results;
mod sitting;
mod suites;
mod tree_copy;

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
        #[command(flatten)]
        sitting: sitting::Sitting,
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
        /// Parts of names do as well
        #[command(flatten)]
        sitting: sitting::Sitting,
        /// End a check that takes longer, as 90s, 30m or 8h
        #[arg(long, value_name = "TIME", value_parser = sitting::duration, default_value = "6h")]
        each: std::time::Duration,
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
    /// Measure what is compiled again after one line is changed, in a copy of the tree (the first time some minutes)
    Rebuilds,
    /// Write docs/papers/claims.md and the counts of docs/papers/README.md from papers/ and benchmarks/
    Papers {
        /// Only check them, and what the claims cite; says what is stale, or of too few pairs
        #[arg(long)]
        check: bool,
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
        Task::Mutants {
            sitting,
            check: true,
        } => mutants::check(&root, &sitting.names),
        Task::Mutants { sitting, .. } => mutants::run(&root, &sitting),
        Task::House { report } => house::check(&root, &repository::files(&root)?, report),
        Task::Check { name } => check::run(&root, &name),
        Task::Long { sitting, each } => long::run(&root, &sitting, each),
        Task::Test { suites, nextest } => suites::run(&root, &nextest, &suites),
        Task::Benchmark { what } => benchmarks::repeat(&root, &what),
        Task::Rebuilds => rebuilds::run(&root),
        Task::Papers { check } => papers::write(&root, check),
        Task::Performance { check } => benchmarks::performance(&root, check),
        Task::References => references::check(&root, &repository::files(&root)?),
    }
}
