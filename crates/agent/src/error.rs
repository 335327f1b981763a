// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a host cannot be observed.

use std::{fmt, io};

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
    /// KVM is in the kernel, and cannot run a VM.
    #[error(
        "this host runs no VMs: /dev/kvm is not there (its CPU has no hardware virtualisation, or neither kvm_amd nor kvm_intel is loaded)"
    )]
    NoKvmDevice,
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
        /// What libbpf and the verifier printed: the last lines of it follow.
        log: KernelLog,
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

impl Error {
    /// The error in one line, without the kernel's log.
    pub fn line(&self) -> String {
        let text = self.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// What the kernel printed, where it did not refuse for another reason; all of it.
    pub fn kernel_log(&self) -> Option<&KernelLog> {
        match self {
            Error::Bpf { log, .. } => Some(log),
            _ => None,
        }
    }
}

/// What libbpf and the kernel's verifier printed. Shows its last lines only, where the verdict stands.
#[derive(Debug, Default)]
pub struct KernelLog(String);

/// Lines that are shown.
const SHOWN_LINES: usize = 30;

impl KernelLog {
    pub(crate) fn new(printed: String) -> KernelLog {
        KernelLog(printed)
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether there are more lines than are shown.
    pub fn is_cut(&self) -> bool {
        self.0.lines().nth(SHOWN_LINES).is_some()
    }

    /// The program that was refused, by libbpf's words (libbpf 1.7, bpf_object_load_prog()).
    pub(crate) fn program(&self) -> Option<&str> {
        let failed = |line: &&str| line.contains("BPF program load failed");
        let line = self.0.lines().find(failed)?;
        line.split_once("prog '")?.1.split('\'').next()
    }
}

impl fmt::Display for KernelLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.0.lines().collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        shown.iter().try_for_each(|line| write!(out, "\n  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log_are_shown_and_all_of_it_kept() {
        let lines: Vec<String> = (1..=31).map(|line| format!("line {line}")).collect();
        let log = KernelLog::new(lines.join("\n"));
        assert!(log.is_cut());
        assert_eq!(log.text().lines().count(), 31);
        let shown = log.to_string();
        assert!(
            shown.starts_with("\n  line 2\n") && shown.ends_with("line 31"),
            "{shown}"
        );
        let short = KernelLog::new(lines[..30].join("\n"));
        assert!(!short.is_cut());
        assert!(!KernelLog::default().is_cut());
        assert_eq!(KernelLog::default().to_string(), "");
    }

    #[test]
    fn the_program_that_was_refused_is_named() {
        let printed = "libbpf: prog 'steer_yield': BPF program load failed: -EINVAL\nlibbpf: prog 'other': -- BEGIN";
        assert_eq!(
            KernelLog::new(printed.into()).program(),
            Some("steer_yield")
        );
        let map = "libbpf: map 'tasks': failed to create: -ENOMEM";
        assert_eq!(KernelLog::new(map.into()).program(), None);
    }
}
