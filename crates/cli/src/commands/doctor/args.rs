// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin doctor` takes.

use std::path::PathBuf;

use crate::terminal::options::Output;
use clap::Args;

/// `unspin doctor`
#[derive(Args, Debug)]
pub struct DoctorArguments {
    /// Instead of this machine: whether every BPF program of ours finds what it needs in that kernel, without booting it.
    /// A folder with `vmlinuz` and `modules/`, as set-up's cache has them; what is packed is unpacked beside it.
    #[arg(long, value_name = "FOLDER")]
    pub kernel: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}
