// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin policy` takes.

use std::path::PathBuf;

use crate::terminal::options::Output;
use clap::{Args, Subcommand};
use unspin_vms::VmName;

/// `unspin policy ...`
#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Print the names of all policies.
    List,
    /// Change the policies of the running `unspin steer`, from the next slice of each vCPU on.
    Set(PolicySetArguments),
    /// Remove a VM's own policies: those for all VMs apply to it again.
    Reset(PolicyResetArguments),
    /// Print the policies of each VM in the running `unspin steer`, since when, and by what they were set.
    Show(PolicyShowArguments),
    /// Write a user policy, NAME.c, with comments that explain it, and its test NAME_test.c, into this folder.
    New(PolicyNewArguments),
    /// Compile a user policy and its test for this machine, and run the test.
    Test(PolicyFileArguments),
    /// Compile a user policy into an object file, to be loaded where there is no compiler.
    Build(PolicyBuildArguments),
    /// Compute the decisions of a log again, on this machine, and fail unless all are the same to the bit.
    Replay(PolicyReplayArguments),
}

/// `unspin policy set`
#[derive(Args, Debug)]
pub struct PolicySetArguments {
    /// refuse-yields, or some of the others, separated by commas; a user policy, if it runs, by its name.
    #[arg(value_name = "POLICY")]
    pub policy: String,
    /// For this VM alone, by name, UUID, id at its manager or process, until it ends; when absent, for all VMs without policies
    /// of their own.
    #[arg(long, value_name = "VM")]
    pub vm: Option<VmName>,
}

/// `unspin policy reset`
#[derive(Args, Debug)]
pub struct PolicyResetArguments {
    /// The VM, by name, UUID, id at its manager or process.
    #[arg(long, value_name = "VM")]
    pub vm: VmName,
}

/// `unspin policy show`
#[derive(Args, Debug)]
pub struct PolicyShowArguments {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin policy new`
#[derive(Args, Debug)]
pub struct PolicyNewArguments {
    /// The prefix of its functions' names: letters a to z, digits and `_`.
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `unspin policy test`
#[derive(Args, Debug)]
pub struct PolicyFileArguments {
    /// The policy's C file.
    #[arg(value_name = "NAME.c")]
    pub file: PathBuf,
}

/// `unspin policy build`
#[derive(Args, Debug)]
pub struct PolicyBuildArguments {
    /// The policy's C file.
    #[arg(value_name = "NAME.c")]
    pub file: PathBuf,
    /// Where to put the object; NAME.bpf.o in this folder when absent.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// For `steer --dry-run`.
    #[arg(long)]
    pub dry_run: bool,
}

/// `unspin policy replay`
#[derive(Args, Debug)]
pub struct PolicyReplayArguments {
    /// What `unspin steer --log-decisions` wrote.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The C file of the user policy that was called, too.
    #[arg(long, value_name = "NAME.c")]
    pub with: Option<PathBuf>,
}
