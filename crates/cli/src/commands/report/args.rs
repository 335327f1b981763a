// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin report` takes.

use std::path::PathBuf;

use clap::{Args, builder::ArgPredicate};
use unspin_vms::VmName;

use crate::terminal::options::Output;

/// `unspin report`
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// The recording (`unspin record`, `unspin vm run --record`, `unspin lab run --record`), or an event log (`--events`).
    #[arg(value_name = "RECORDING", required_unless_present = "papers")]
    pub recording: Option<PathBuf>,
    /// In place of a recording: a page of what the five papers claim and what was measured of it, with every remedy under every load
    /// as a heat map. --json prints the heat map's measurements.
    #[arg(long, conflicts_with_all = ["recording", "vms", "redact", "symbols"])]
    pub papers: bool,
    /// With --papers: the repository with papers/ and benchmarks/; the one that this folder is in when absent.
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "papers",
        conflicts_with = "recording"
    )]
    pub tree: Option<PathBuf>,
    /// Where to write the page, in place of what is there.
    #[arg(
        long,
        visible_alias = "output",
        value_name = "FILE",
        default_value = "report.html",
        default_value_if("papers", ArgPredicate::IsPresent, "papers.html")
    )]
    pub out: PathBuf,
    /// This VM alone, by name, UUID, id at its manager or process. May be repeated; all VMs when absent.
    #[arg(long = "vm", value_name = "VM")]
    pub vms: Vec<VmName>,
    /// For a page that goes to others: pseudonyms in place of the names and ids of VMs and of the host's tasks, the same for the same
    /// name.
    #[arg(long)]
    pub redact: bool,
    /// Names for the guests' addresses, as of explain: they tell locks and function calls apart where interrupts are not seen.
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,
    /// How to print the verdicts.
    #[command(flatten)]
    pub output: Output,
}
