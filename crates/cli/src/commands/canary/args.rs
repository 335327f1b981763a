// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin canary` takes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::Args;
use unspin_agent::PolicyChoice;
use unspin_canary::{Limits, ProbeCommand};

use crate::terminal::options::{Output, parse_limit, parse_time};

/// `unspin canary`
#[derive(Args, Debug)]
pub struct CanaryArguments {
    /// What decides while our scheduler has the host, as for `unspin steer`, but for policies of pause-loop windows.
    #[arg(long, value_name = "POLICY", default_value = "auto")]
    pub policy: PolicyChoice,
    /// Phases of each scheduler, in the order A B B A; 2 at least.
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    pub pairs: u32,
    /// How long a phase is measured; 4s at least.
    #[arg(long, value_name = "TIME", value_parser = parse_limit, default_value = "10s")]
    pub sample: Duration,
    /// What is left out after each change; with `auto` 20s at least, in which it tries its sets. Guards look from 1 s after a change on,
    /// with `auto` until then at delays alone.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1s")]
    pub discard: Duration,
    /// A measure of your own, for `sh -c`, run again and again in every phase: it prints one number, of which more is better. A status
    /// other than 0 is harm.
    #[arg(long, value_name = "COMMAND")]
    pub probe: Option<String>,
    /// A run of the probe that takes longer is killed, and is harm.
    #[arg(long, value_name = "TIME", value_parser = parse_limit, default_value = "2s")]
    pub probe_timeout: Duration,
    /// Schedule VMs only, as `unspin steer --only-vms`.
    #[arg(long)]
    pub only_vms: bool,
    /// End when all phases are over, also when the policy is good.
    #[arg(long)]
    pub no_keep: bool,
    /// Harm: a VM's useful time, as a share of the time in which its vCPUs run or wait, falls by more; percent.
    #[arg(long, value_name = "PERCENT", default_value_t = Limits::default().useful_loss_percent)]
    pub max_useful_loss: f64,
    /// Harm: a VM's spin time, in percent of its time in the guest, rises by more; points.
    #[arg(long, value_name = "POINTS", default_value_t = Limits::default().spin_rise_points)]
    pub max_spin_rise: f64,
    /// Harm: the 99th percentile of the time that a VM's vCPUs wait for a CPU before a run rises to more than so many times, and by 25 ms.
    #[arg(long, value_name = "FACTOR", default_value_t = Limits::default().run_delay_rise)]
    pub max_delay_rise: f64,
    /// Harm: the same of how late a thread of the host that sleeps for 1 ms wakes up, and by 5 ms.
    #[arg(long, value_name = "FACTOR", default_value_t = Limits::default().sleeper_delay_rise)]
    pub max_sleeper_rise: f64,
    /// Harm: what the probe prints falls by more; percent.
    #[arg(long, value_name = "PERCENT", default_value_t = Limits::default().probe_loss_percent)]
    pub max_probe_loss: f64,
    /// Write all that was measured to this file, as --json prints it.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Run this meanwhile, as in VMs to try it on. When it ends the canary does; after the canary it has 5 s to end.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl CanaryArguments {
    /// What is harm.
    pub fn limits(&self) -> Limits {
        Limits {
            useful_loss_percent: self.max_useful_loss,
            spin_rise_points: self.max_spin_rise,
            run_delay_rise: self.max_delay_rise,
            sleeper_delay_rise: self.max_sleeper_rise,
            probe_loss_percent: self.max_probe_loss,
        }
    }

    /// The user's own measure.
    pub fn probe(&self) -> Option<ProbeCommand> {
        let command = self.probe.clone()?;
        Some(ProbeCommand {
            command,
            timeout: self.probe_timeout,
        })
    }
}
