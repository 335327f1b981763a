// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this host lets `unspin` do, for `unspin doctor`.

use std::{fs, path::Path};

use libbpf_rs::ProgramType;

use crate::kernel::{
    btf::{KernelBtf, Kind},
    requirements, thread_slice,
};

/// Kernel functions that `bpf/scheduler/main.bpf.c` calls and that a kernel may lack: Linux 7.2 has them, Debian's 7.2.12+deb13 has
/// sched_ext, but no BPF program can call several.
pub const SCHED_EXT_FUNCTIONS: [&str; 17] = [
    "scx_bpf_create_dsq",
    "scx_bpf_select_cpu_dfl",
    "__scx_bpf_select_cpu_and",
    "scx_bpf_dsq_insert",
    "__scx_bpf_dsq_insert_vtime",
    "scx_bpf_dsq_move_to_local",
    "scx_bpf_dsq_peek",
    "scx_bpf_dsq_nr_queued",
    "bpf_iter_scx_dsq_new",
    "scx_bpf_dsq_move_set_slice",
    "scx_bpf_dsq_move",
    "scx_bpf_task_set_slice",
    "scx_bpf_kick_cpu",
    "scx_bpf_pick_idle_cpu",
    "scx_bpf_get_online_cpumask",
    "scx_bpf_reenqueue_local",
    "scx_bpf_exit_bstr",
];

/// What is there. All of it can be asked without root; `bpf_loadable` then says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCapabilities {
    /// Release of the running kernel.
    pub kernel: String,
    /// Effective user is root.
    pub root: bool,
    /// The kernel describes its types (`/sys/kernel/btf/vmlinux`).
    pub btf: bool,
    /// A BPF tracing program was loaded just now, as a trial.
    pub bpf_loadable: bool,
    /// KVM is loaded or built in.
    pub kvm: bool,
    /// Which hardware KVM drives: "amd", "intel", or `None`.
    pub kvm_hardware: Option<&'static str>,
    /// Why `Observer::attach` would fail, if it would.
    pub observe_error: Option<String>,
    /// `/sys/kernel/sched_ext` is there: CONFIG_SCHED_CLASS_EXT.
    pub sched_ext: bool,
    /// What is in `/sys/kernel/sched_ext/state` ("disabled", "enabled", ...).
    pub sched_ext_state: Option<String>,
    /// Kernel functions of [`SCHED_EXT_FUNCTIONS`] that no BPF program can call here; all of them without sched_ext.
    pub sched_ext_missing: Vec<&'static str>,
    /// Threads may have slices of their own: Linux 6.12.
    pub thread_slices: bool,
}

/// Looks at this host. Loads one harmless BPF program and drops it; changes nothing.
pub fn capabilities() -> HostCapabilities {
    let vmlinux = KernelBtf::vmlinux();
    let in_vmlinux = |name: &str, kind| vmlinux.as_ref().is_some_and(|btf| btf.has(name, kind));
    HostCapabilities {
        kernel: requirements::release(),
        // SAFETY: geteuid() takes nothing, touches no memory and cannot fail.
        root: unsafe { libc::geteuid() } == 0,
        btf: vmlinux.is_some(),
        bpf_loadable: ProgramType::Kprobe.is_supported().unwrap_or(false),
        kvm: Path::new("/sys/module/kvm").exists()
            || in_vmlinux("btf_trace_kvm_exit", Kind::Typedef),
        kvm_hardware: kvm_hardware(),
        observe_error: requirements::check().err().map(|error| error.to_string()),
        sched_ext: Path::new("/sys/kernel/sched_ext").exists(),
        sched_ext_state: fs::read_to_string("/sys/kernel/sched_ext/state")
            .ok()
            .map(|state| state.trim().to_owned()),
        sched_ext_missing: SCHED_EXT_FUNCTIONS
            .into_iter()
            .filter(|name| !vmlinux.as_ref().is_some_and(|btf| btf.callable(name)))
            .collect(),
        thread_slices: thread_slice::has_thread_slices(),
    }
}

fn kvm_hardware() -> Option<&'static str> {
    [("amd", "kvm_amd"), ("intel", "kvm_intel")]
        .into_iter()
        .find(|(_, module)| Path::new("/sys/module").join(module).exists())
        .map(|(name, _)| name)
}
