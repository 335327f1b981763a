// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a host cannot be observed.

use std::io;

/// Why the programs could not be attached or read. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller may not load BPF programs.
    #[error(
        "observing KVM needs root (CAP_SYS_ADMIN, or at least CAP_BPF and CAP_PERFMON where KVM is built in): {missing} is missing; run it with sudo"
    )]
    NotPermitted {
        /// The capability that is missing.
        missing: &'static str,
    },
    /// The kernel says nothing about its types.
    #[error(
        "/sys/kernel/btf/vmlinux is missing: this kernel was built without CONFIG_DEBUG_INFO_BTF; a distribution's kernel of version 6.1 or later has it"
    )]
    NoBtf,
    /// No KVM.
    #[error(
        "the kernel module kvm is not loaded: `modprobe kvm_amd` or `modprobe kvm_intel` first"
    )]
    KvmNotLoaded,
    /// A function or tracepoint that a program attaches to is not there.
    #[error(
        "this kernel ({kernel}) has no {what} `{name}` in the BTF of {module}: it is too old or was built without it"
    )]
    Missing {
        /// "function" or "tracepoint".
        what: &'static str,
        /// Its name.
        name: &'static str,
        /// Where it was looked for.
        module: &'static str,
        /// Release of the running kernel.
        kernel: String,
    },
    /// An option out of its range.
    #[error("{option} is {value}: allowed is {allowed}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What it was.
        value: u64,
        /// What it may be.
        allowed: &'static str,
    },
    /// The kernel refused a step; the kernel's own words, where it had any, follow.
    #[error("{step}: {source}{log}")]
    Bpf {
        /// What was tried.
        step: String,
        /// What libbpf said.
        source: libbpf_rs::Error,
        /// Lines that libbpf printed, each on a line of its own; empty: none.
        log: String,
    },
    /// The kernel gave back something else than was asked for: a fault of this program.
    #[error("{map}: expected {expected} bytes, the kernel gave {found}")]
    Layout {
        /// Which map.
        map: &'static str,
        /// Size of our struct.
        expected: usize,
        /// Size of the value.
        found: usize,
    },
    /// BPF run statistics could not be switched on.
    #[error("switching BPF run statistics on: {0}")]
    Statistics(io::Error),
}
