// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin report` takes.

use std::path::PathBuf;

use clap::Args;

use crate::{commands::vm_name::VmName, terminal::options::Output};

/// `unspin report`
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// The recording (`unspin record`, `unspin vm run --record`, `unspin lab run --record`), or an event log (`--events`).
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// Where to write the page, in place of what is there.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
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
