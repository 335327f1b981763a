// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin steer` takes.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::terminal::options::{Output, parse_limit};
use clap::Args;
use unspin_agent::{DisclosureChoice, PolicyChoice, steer::vm_choice::VmChoice};
use unspin_config::SteerGiven;
use unspin_vms::VmName;

/// `unspin steer`
#[derive(Args, Debug)]
pub struct SteerArguments {
    /// Where options come from that this command line does not have, table [steer]; /etc/unspin/unspin.toml when absent, if it is
    /// there (/dev/null: none).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What decides: auto, which gives each VM what is best for it by trial; refuse-yields, or some of those that `unspin policy list` prints, apart by commas; and a user policy,
    /// ./NAME.c or what `unspin policy build` made of it, which is asked first. For the pause-loop window: window=N,
    /// window=kvm, apple or apple=DELTA/LOWER/INITIAL/UPPER, which alone leave the host's scheduler in place. auto when absent.
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<PolicyChoice>,
    /// The kernel module that sets windows (kmod/); /lib/modules/<release>/extra/unspin_ple.ko when absent. none: set no
    /// windows, but tell guests that cooperate how many iterations to spin before they halt or ask for help; apple does so by itself
    /// where no module is installed.
    #[arg(long, value_name = "FILE")]
    pub ple_module: Option<PathBuf>,
    /// With --policy auto: print every epoch of this VM, or of `all`, as it ends, and all of them when it is over.
    #[arg(long, value_name = "VM")]
    pub explain_choice: Option<VmName>,
    /// Attach nothing to the scheduler: take every decision as far as its facts are known, count it, and say who would
    /// have been chosen. Also works where there is no sched_ext.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOLEAN")]
    pub dry_run: Option<bool>,
    /// VM, by name, UUID, id at its manager or process: let policies touch its vCPUs only. VM=POLICY: it has that policy in place
    /// of --policy, whoever else is touched. May be repeated, and go with --cgroup.
    #[arg(long = "vm", value_name = "VM[=POLICY]")]
    pub vms: Vec<VmChoice>,
    /// Let policies touch the vCPUs in this cgroup and below only, as in /sys/fs/cgroup/machine.slice. May be repeated.
    #[arg(long = "cgroup", value_name = "FOLDER")]
    pub cgroups: Vec<PathBuf>,
    /// Schedule VMs only: their vCPU threads, and threads of theirs that have a thread page, are moved to our scheduler
    /// (SCHED_EXT) as they come, and get their policy back at the end. All else stays with the kernel's scheduler, and goes
    /// before them: beside tasks that never sleep VMs get what the kernel keeps for them, 5 % of a CPU.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOLEAN")]
    pub only_vms: Option<bool>,
    /// How much guests are told in their pv pages: nothing, own (the default: what concerns the vCPU itself), or all (also
    /// whether somebody else could run on its CPU). For one VM: all=VM or all=FOLDER of its cgroup. May be repeated.
    #[arg(long = "disclose", value_name = "LEVEL[=WHOM]")]
    pub disclose: Vec<DisclosureChoice>,
    /// The guests' symbols, their /proc/kallsyms as root there, or System.map where the guest boots with nokaslr: a vCPU in
    /// a function that only runs inside critical sections counts as in one (AMD only). For all that are steered.
    #[arg(long, value_name = "FILE")]
    pub sections: Option<PathBuf>,
    /// Detach after so long, as in 30s; until Ctrl-C when absent, or until COMMAND ends.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub duration: Option<Duration>,
    /// Write every decision with all that it followed from to this file; `unspin policy replay` takes them again.
    #[arg(long, value_name = "FILE")]
    pub log_decisions: Option<PathBuf>,
    /// Where what the kernel says of a failure is kept: its dump when it takes its own scheduler back (exit status 3), or its
    /// verifier's log when it refuses programs. A file that is not there yet; when absent a new one in /var/log/unspin, or in the
    /// folder that systemd made (LogsDirectory=).
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,
    /// As a service that may begin by itself, at boot: says when it is ready and that it is alive to the service manager
    /// (sd_notify(3)), and keeps a latch. When the kernel has taken its own scheduler back, or steer or the host has ended while it
    /// steered, it does not steer again, not after a reboot either (exit status 4), until --clear-latch.
    #[arg(long, conflicts_with = "command")]
    pub service: bool,
    /// Take away what keeps `unspin steer --service` from steering again, and say what that was.
    #[arg(long, exclusive = true)]
    pub clear_latch: bool,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Run this meanwhile, detach when it ends, and pass its exit status on.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl SteerArguments {
    /// What this command line says of options that the configuration has too.
    pub fn given(&self) -> SteerGiven {
        SteerGiven {
            policy: self.policy.clone(),
            only_vms: self.only_vms,
            dry_run: self.dry_run,
            vms: self.vms.clone(),
            cgroups: self.cgroups.clone(),
            disclose: self.disclose.clone(),
            ple_module: self.ple_module.clone(),
            sections: self.sections.clone(),
        }
    }

    /// Whether this command line says that guests' thresholds are to be set in place of windows, wherever the module is.
    pub fn sets_thresholds(&self) -> bool {
        self.ple_module.as_deref() == Some(Path::new("none"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        steer: SteerArguments,
    }

    #[test]
    fn what_is_not_said_is_left_to_the_file() {
        let given = |line: &str| {
            let words = std::iter::once("steer").chain(line.split_whitespace());
            Line::try_parse_from(words).map(|line| line.steer.given())
        };
        assert_eq!(given("").expect("valid"), SteerGiven::default());
        let said = given("--only-vms=false --dry-run").expect("valid");
        assert_eq!((said.only_vms, said.dry_run), (Some(false), Some(true)));
        let said = given("--policy auto --vm c --cgroup /a").expect("valid");
        assert!(said.policy.is_some_and(|policy| policy.is_auto()));
        assert_eq!(said.vms, ["c".parse().expect("a VM")]);
        assert_eq!(said.cgroups, [PathBuf::from("/a")]);
        assert!(given("--clear-latch --policy loan").is_err());
    }
}
