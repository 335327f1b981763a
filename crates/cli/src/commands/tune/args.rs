// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin tune` takes.

use std::{ffi::OsString, time::Duration};

use clap::Args;
use unspin_agent::tune::HostSlice;
use unspin_vms::VmName;

use crate::terminal::options::{Output, parse_limit};

/// `unspin tune`
#[derive(Args, Debug)]
pub struct TuneArguments {
    /// The slices of vCPUs' threads: auto, by trial the best for each VM among the kernel's own, 100us, 300us and 10ms; or one for all,
    /// 100us to 100ms.
    #[arg(long, value_name = "TIME", default_value = "auto")]
    pub slice: HostSlice,
    /// This VM alone, by name, UUID, id at its manager or process. May be repeated; all VMs when absent.
    #[arg(long = "vm", value_name = "VM")]
    pub vms: Vec<VmName>,
    /// With --slice auto: print every epoch of this VM, or of `all`, as it ends, and all of them when it is over.
    #[arg(long, value_name = "VM")]
    pub explain_choice: Option<VmName>,
    /// End after so long, as in 30s; on Ctrl-C when absent, or when COMMAND ends.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub duration: Option<Duration>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Run this meanwhile, end when it ends, and pass its exit status on.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
