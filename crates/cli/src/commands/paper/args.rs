// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin paper` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::terminal::options::Output;

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PaperKey {
    /// Friebel and Biemueller, 2008: helping locks.
    Friebel,
    /// Ouyang and Lange, VEE 2013: preemptable ticket spinlocks.
    Vee13,
    /// Shan, Ding and Gehani: the pause-loop window adapted to measured inefficiency.
    Apple,
    /// Kashyap, Min and Kim, ATC 2018: hints between guest and hypervisor.
    Ecs,
    /// Ishiguro et al., VEE 2021: debooster and strict boost.
    Vee21,
}

impl PaperKey {
    /// As files of claims spell it.
    pub fn key(self) -> &'static str {
        match self {
            PaperKey::Friebel => "friebel",
            PaperKey::Vee13 => "vee13",
            PaperKey::Apple => "apple",
            PaperKey::Ecs => "ecs",
            PaperKey::Vee21 => "vee21",
        }
    }
}

/// A world in which claims are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunWorld {
    /// The simulated host: runs here.
    Lab,
    /// Guests under KVM: the commands are printed, each takes minutes in the testbed.
    Kvm,
}

/// `unspin paper`
#[derive(Args, Debug)]
pub struct PaperArguments {
    /// The paper; all five when absent.
    #[arg(value_name = "PAPER")]
    pub paper: Option<PaperKey>,
    /// Only this claim, as V09. May be repeated.
    #[arg(long = "claim", value_name = "CLAIM")]
    pub claims: Vec<String>,
    /// Print this table of the paper in its own form, with the lab's rows below the paper's; Friebel's have no numbers, so they
    /// count from 1.
    #[arg(long, value_name = "NUMBER", requires = "paper", conflicts_with_all = ["claims", "run"])]
    pub table: Option<u32>,
    /// Print this figure of the paper in its own form: a bar for each number of the lab, of KVM and of the paper's text. Of a figure
    /// for which nothing was measured the reason is told; Friebel's have no numbers, so they count from 1.
    #[arg(long, value_name = "NUMBER", requires = "paper", conflicts_with_all = ["claims", "run", "table"])]
    pub figure: Option<u32>,
    /// With --figure: write it as a picture (SVG), too, in place of what is there.
    #[arg(long, value_name = "FILE", requires = "figure")]
    pub svg: Option<PathBuf>,
    /// Run what is missing or stale first, and keep it in benchmarks/papers-lab; after Ctrl-C it goes on where it was.
    #[arg(long)]
    pub run: bool,
    /// With --run: only in this world; without it the lab runs, and the commands for KVM are printed.
    #[arg(long, value_name = "WORLD", requires = "run")]
    pub world: Option<RunWorld>,
    /// With --run: how many runs of the lab at a time; as many as there are CPUs when absent.
    #[arg(long, requires = "run", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub workers: Option<u32>,
    /// The repository with papers/ and benchmarks/; the one that this folder is in when absent.
    #[arg(long, value_name = "FOLDER")]
    pub tree: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}
