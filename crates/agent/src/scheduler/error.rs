// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a host cannot be steered.

use std::io;

use unspin_policy::mechanics::DEEPEST_GROUP;

use super::SteerEnd;
use crate::Error;

/// Why our scheduler was not attached, or could not be asked. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// The caller may not replace the scheduler.
    #[error("steering needs root: {missing} is missing; run it with sudo")]
    NotPermitted {
        /// The capability that is missing.
        missing: &'static str,
    },
    /// The kernel cannot run a scheduler in BPF.
    #[error(
        "this kernel ({kernel}) has no sched_ext: it needs Linux 6.12 or later with CONFIG_SCHED_CLASS_EXT, as Debian's 7.2 has"
    )]
    NoSchedExt {
        /// Release of the running kernel.
        kernel: String,
    },
    /// It can, but does not let us call all that we need.
    #[error(
        "this kernel ({kernel}) has sched_ext, but by its BTF programs cannot call {}: the scheduler cannot do without; with Debian's 7.2 kernel of forky or sid (+deb14, not the backport +deb13) they can",
        functions.join(", ")
    )]
    MissingFunctions {
        /// Release of the running kernel.
        kernel: String,
        /// Kernel functions that cannot be called.
        functions: Vec<&'static str>,
    },
    /// It does not let us call what keeps vCPUs from waiting behind tasks of the kernel's own scheduler.
    #[error(
        "--only-vms needs Linux 7.1 or later: by its BTF programs cannot call {function} on this kernel ({kernel}), and a vCPU could wait behind a busy task while another CPU has room; without --only-vms all tasks are under one scheduler"
    )]
    NotOnlyVms {
        /// Release of the running kernel.
        kernel: String,
        /// The kernel function that cannot be called.
        function: &'static str,
    },
    /// CPUs are isolated from the host's scheduler since it booted, which sched_ext refuses to take over.
    #[error(
        "this host was booted with `{argument}`: its kernel attaches no sched_ext scheduler then; isolate these CPUs by a cgroup (cpuset.cpus.partition = isolated) or nohz_full= instead, which unspin leaves alone"
    )]
    IsolatedAtBoot {
        /// The kernel's argument.
        argument: String,
    },
    /// Another sched_ext scheduler is attached.
    #[error(
        "another sched_ext scheduler, `{name}`, runs on this host ({state}): stop it first; unspin does not push others aside"
    )]
    OtherScheduler {
        /// Its name.
        name: String,
        /// What /sys/kernel/sched_ext/state says.
        state: String,
    },
    /// The kernel has taken its own scheduler back while it handed it tasks and cgroups.
    #[error("the kernel took its own scheduler back before ours had every task: {end}; {}", end.advice())]
    TakenBack {
        /// Why.
        end: Box<SteerEnd>,
    },
    /// Cgroups with a quota that the scheduler would not keep: they lie too deep.
    #[error(
        "cpu.max is set on {}: unspin counts cgroups that lie more than {DEEPEST_GROUP} levels below the root as their parent, and will not ignore their quotas; set them to `max` first",
        list(cgroups)
    )]
    Quotas {
        /// Their folders.
        cgroups: Vec<String>,
    },
    /// Threads with cookies of core scheduling, on a host with SMT.
    #[error(
        "core scheduling (PR_SCHED_CORE) is on for {}: a host with SMT stops for good under any sched_ext scheduler then (github.com/sched-ext/scx/issues/3715); start them without it (Cloud Hypervisor: --cpus core_scheduling=off) or switch SMT off",
        list(processes)
    )]
    CoreScheduling {
        /// "name (process)" of each.
        processes: Vec<String>,
    },
    /// There is nothing to change.
    #[error("no `unspin steer` runs on this host, or without root it cannot be found")]
    NotRunning,
    /// A VM that was to have policies of its own is not there.
    #[error(
        "there is no process {process}; a VM is named by its VMM's process, not by a thread of it"
    )]
    NoProcess {
        /// Its number.
        process: u32,
    },
    /// More VMs than there is room for have policies of their own.
    #[error(
        "{} VMs have policies of their own, and there is no room for more",
        unspin_abi::UNSPIN_STEER_VMS_MAX
    )]
    TooManyVms,
    /// A rule of candidates or samples of spinners were asked for, and the programs for them are not loaded.
    #[error(
        "a rule of candidates, or spin-samples, needs programs that are loaded with the scheduler only: start `unspin steer` with one, as in --policy candidates=kvm-7.2; a dry run has none"
    )]
    NoCandidates,
    /// A file of the kernel that must be there cannot be read or understood.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// BPF programs could not be loaded, attached or read.
    #[error(transparent)]
    Bpf(#[from] Error),
}

/// The first few, and how many more.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_named_up_to_a_point() {
        let cgroups: Vec<String> = (0..7).map(|number| format!("/g{number}")).collect();
        let said = SteerError::Quotas {
            cgroups: cgroups.clone(),
        }
        .to_string();
        assert!(
            said.contains("/g0, /g1, /g2, /g3, /g4 and 2 more"),
            "{said}"
        );
        assert_eq!(list(&cgroups[..2]), "/g0, /g1");
    }
}
