// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the kernel has taken its own scheduler back, and what to do about it.

use std::fmt;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use unspin_abi as abi;

use crate::{
    Error,
    kernel::{bytes::text, load},
};

/// What the kernel puts at the end of a dump that had no room (scx_dump_state(), kernel/sched/ext/ext.c, Linux 7.2).
const CUT: &str = "~~~~ TRUNCATED ~~~~";

/// Who ended it (enum scx_exit_kind, kernel/sched/ext/internal.h, Linux 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteerEndKind {
    /// A process, other than by closing the link that holds it.
    UserSpace,
    /// The scheduler itself, which says why.
    Itself,
    /// The kernel, because the host has changed.
    Kernel,
    /// An administrator: SysRq-S.
    SysRq,
    /// The kernel: the scheduler, or what it asked for, went wrong.
    Error,
    /// The scheduler itself: something went wrong.
    ItsError,
    /// The kernel's watchdog: a task that wanted to run was not run in time.
    Stall,
    /// What this version does not know.
    Other(u32),
}

impl SteerEndKind {
    /// By the kernel's number; `None` for 0, which is no end.
    pub(crate) fn of(number: u32) -> Option<SteerEndKind> {
        Some(match number {
            0 => return None,
            64 => SteerEndKind::UserSpace,
            65 => SteerEndKind::Itself,
            66 => SteerEndKind::Kernel,
            67 => SteerEndKind::SysRq,
            1024 => SteerEndKind::Error,
            1025 => SteerEndKind::ItsError,
            1026 => SteerEndKind::Stall,
            other => SteerEndKind::Other(other),
        })
    }

    /// One word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SteerEndKind::UserSpace => "user-space",
            SteerEndKind::Itself => "itself",
            SteerEndKind::Kernel => "kernel",
            SteerEndKind::SysRq => "sysrq",
            SteerEndKind::Error => "error",
            SteerEndKind::ItsError => "its-error",
            SteerEndKind::Stall => "stall",
            SteerEndKind::Other(_) => "other",
        }
    }

    /// What whoever runs the host does then.
    fn advice(self) -> &'static str {
        match self {
            SteerEndKind::UserSpace => {
                "a process has detached it by force; find out which, then start `unspin steer` again"
            }
            SteerEndKind::Itself => {
                "take back what the message names, then start `unspin steer` again"
            }
            SteerEndKind::Kernel => "start `unspin steer` again",
            SteerEndKind::SysRq => {
                "somebody asked for it (SysRq-S, /proc/sysrq-trigger); start `unspin steer` again when it may"
            }
            SteerEndKind::Stall => {
                "look in the dump for the task that the message names and for what runs on its CPU: a real-time task that never \
                 sleeps keeps a CPU from all others; if there is none, this is a fault of unspin's: report it with the dump"
            }
            SteerEndKind::Error | SteerEndKind::ItsError => {
                "this is a fault of unspin's or of the kernel's: report it with the dump; do not start `unspin steer` again on \
                 this host before it is understood"
            }
            SteerEndKind::Other(_) => "report it with the dump",
        }
    }
}

/// Why the scheduler is no longer attached.
#[derive(Clone, PartialEq, Eq)]
pub struct SteerEnd {
    /// Who ended it.
    pub kind: SteerEndKind,
    /// The kernel's word: "runnable task stall", "unregistered from BPF" ...
    pub reason: String,
    /// More about it; may be empty.
    pub message: String,
    /// After an error, who ran and who waited then, as the kernel and the scheduler tell it; otherwise empty.
    pub dump: String,
}

impl SteerEnd {
    /// From the maps of a scheduler that has ended; `None` while it is attached.
    pub(super) fn read(ended: &MapHandle, dump: &MapHandle) -> Result<Option<SteerEnd>, Error> {
        let ended: abi::unspin_steer_exit = load::value(ended, "ended", 0)?;
        let Some(kind) = SteerEndKind::of(ended.kind) else {
            return Ok(None);
        };
        let dump = dump
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| load::refused("reading the dump", source))?;
        let dump = dump.unwrap_or_default();
        let written = dump.iter().take_while(|byte| **byte != 0).count();
        Ok(Some(SteerEnd {
            kind,
            reason: text(&ended.reason),
            message: text(&ended.message),
            dump: String::from_utf8_lossy(&dump[..written]).into_owned(),
        }))
    }

    /// What to do about it, in a sentence.
    pub fn advice(&self) -> &'static str {
        // ops.init_task(), ops.cgroup_init() and ops.init() say so with errno (scx_init_task(), scx_cgroup_init()).
        let memory = self.kind == SteerEndKind::Error
            && [libc::ENOMEM, libc::ENOSPC]
                .iter()
                .any(|errno| self.message.contains(&format!("failed (-{errno})")));
        if memory {
            return "memory was short, on the host or in the memory cgroup of `unspin steer`, which all that it keeps of tasks and \
                    cgroups counts for: give it more, then start it again";
        }
        self.kind.advice()
    }

    /// Whether there was more to the dump than the kernel had room for.
    pub fn dump_is_cut(&self) -> bool {
        self.dump.ends_with(&format!("{CUT}\n"))
    }
}

/// Without the dump, which is pages long.
impl fmt::Debug for SteerEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SteerEnd { kind, .. } = self;
        write!(out, "{self} ({kind:?}, {} bytes of dump)", self.dump.len())
    }
}

/// Reason and message.
impl fmt::Display for SteerEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => out.write_str(&self.reason),
            message => write!(out, "{}: {message}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(kind: u32, message: &str, dump: &str) -> SteerEnd {
        SteerEnd {
            kind: SteerEndKind::of(kind).expect("an end"),
            reason: "runtime error".into(),
            message: message.into(),
            dump: dump.into(),
        }
    }

    #[test]
    fn every_kind_of_the_kernel_has_a_name_and_an_advice() {
        assert_eq!(SteerEndKind::of(0), None);
        let kinds = [64, 65, 66, 67, 1024, 1025, 1026, 68];
        let names = kinds.map(|kind| end(kind, "", "").kind.name());
        for (place, name) in names.iter().enumerate() {
            assert!(!names[..place].contains(name), "{name} twice");
        }
        assert_eq!(names[7], "other");
        for kind in kinds {
            assert!(end(kind, "", "").advice().len() > 20, "{kind}");
        }
    }

    #[test]
    fn want_of_memory_is_told_from_faults() {
        let advice = |kind, message| end(kind, message, "").advice();
        for message in [
            "ops.init_task() failed (-12) for make[88] while disabling",
            "ops.cgroup_init() failed (-28)",
        ] {
            assert!(
                advice(1024, message).contains("memory was short"),
                "{message}"
            );
        }
        assert!(advice(1024, "ops.init_task() failed (-1)").contains("a fault"));
        assert!(advice(1026, "ops.init_task() failed (-12)").contains("real-time"));
    }

    #[test]
    fn a_dump_that_the_kernel_has_cut_is_known() {
        assert!(!end(1026, "", "CPU states\n").dump_is_cut());
        assert!(!end(1026, "", "").dump_is_cut());
        assert!(end(1026, "", "CPU states\n\n~~~~ TRUNCATED ~~~~\n").dump_is_cut());
    }

    #[test]
    fn an_end_reads_as_reason_and_message() {
        assert_eq!(end(1024, "", "").to_string(), "runtime error");
        assert_eq!(end(1024, "why", "").to_string(), "runtime error: why");
    }
}
