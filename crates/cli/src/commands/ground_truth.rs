// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin ground-truth`: what `explain` says, judged by the guests' own logs. A command of its own, so that `explain` can never
//! see the answer.

use std::path::PathBuf;

use clap::Args;
use unspin_analysis::{Source, explain::evaluation::judge, read_guest_log};
use unspin_report::{Document, Table};

use crate::terminal::{failure::Failure, options::Output, output};

/// `unspin ground-truth`
#[derive(Args, Debug)]
pub struct GroundTruthArguments {
    /// The recording, or an event log.
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// What `vm run --guest-log` wrote in the same run.
    #[arg(long, value_name = "FILE")]
    pub guest_log: PathBuf,
    /// Leave the guests' pv pages out: host knowledge alone.
    #[arg(long)]
    pub no_pv_pages: bool,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Judges and prints.
pub fn run(arguments: &GroundTruthArguments) -> Result<(), Failure> {
    let log = read_guest_log(&arguments.guest_log)?;
    let mut source = Source::open(&arguments.recording)?;
    let (evaluations, confusion) = judge(&mut source, &log, !arguments.no_pv_pages)?;
    let mut document = Document::new("ground-truth", source.machine());
    let title = "Explained causes of waits against true ones; a wait matters when it spun for two pause-loop windows or more";
    document.table(Table::of(title, evaluations));
    document.table(Table::of("By true cause", confusion));
    for problem in &source.problems {
        document.note(problem.clone());
    }
    output::print(&document, arguments.output)?;
    Ok(())
}
