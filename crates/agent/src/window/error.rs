// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a host's pause-loop windows cannot be set.

use std::{io, path::PathBuf};

use crate::Error;

/// Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// Neither of KVM's modules is loaded.
    #[error(
        "neither kvm_amd nor kvm_intel is loaded: `modprobe kvm_amd` or `modprobe kvm_intel` first"
    )]
    NoKvm,
    /// KVM does without pause-loop exits.
    #[error("{module} makes no pause-loop exits on this host: there is no window to set")]
    NoPauseLoops {
        /// Which module.
        module: &'static str,
    },
    /// KVM changes windows by itself, or raises them to its own.
    #[error(
        "{module} changes windows by itself: shut the VMs down and load it with `modprobe -r {module}; modprobe {module} {parameters}`"
    )]
    KvmMoves {
        /// Which module.
        module: &'static str,
        /// What to load it with.
        parameters: String,
    },
    /// The hardware's field is not that wide.
    #[error("windows end at {max} on this host")]
    TooWide {
        /// The widest.
        max: u32,
    },
    /// The kernel does not say how KVM's structs are laid out.
    #[error(
        "/sys/kernel/btf/{module} is missing or needs root: without it nobody knows where KVM keeps the window"
    )]
    NoKvmBtf {
        /// Which module.
        module: &'static str,
    },
    /// It says so, and a field is not there.
    #[error("{module} of this kernel has no {field}: unspin_ple does not know this KVM")]
    NoField {
        /// Which module.
        module: &'static str,
        /// The field.
        field: String,
    },
    /// The module is loaded already, for another KVM.
    #[error(
        "the kernel module unspin_ple is loaded with another layout than this KVM's: `rmmod unspin_ple` first"
    )]
    OtherLayout,
    /// Thresholds have no such policy.
    #[error(
        "window=kvm is KVM's rule for its own window, which the kernel module unspin_ple sets: guests' spin thresholds are set by apple and window=N"
    )]
    NeedsTheModule,
    /// BPF may write no guest memory.
    #[error(
        "this kernel is locked down: BPF may not tell guests how long to spin (lockdown=integrity, or Secure Boot); the kernel module unspin_ple, signed for it, sets windows instead"
    )]
    MayNotWrite,
    /// There is no such file.
    #[error(
        "windows are set by the kernel module unspin_ple, and {}: {source}. `make ple-module` builds it for the testbed's kernel; for this one ({kernel}): `make -C /lib/modules/{kernel}/build M=<a copy of kmod/> modules`, then install it there or name it with --ple-module", path.display()
    )]
    NoModule {
        /// Where it was looked for.
        path: PathBuf,
        /// Release of the running kernel.
        kernel: String,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// The kernel, or the module itself, refuses.
    #[error(
        "loading {}: {source}; the kernel's log says why: another kernel's module, no root, Secure Boot, or a KVM whose layout it does not recognise", path.display()
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// BPF programs could not be loaded, attached or read.
    #[error(transparent)]
    Bpf(#[from] Error),
}
