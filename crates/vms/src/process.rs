// SPDX-License-Identifier: MIT OR Apache-2.0
//! One process: whether it is there, since when, and which VM it runs.

use std::{
    io::{BufReader, Read},
    path::Path,
};

use procfs::{FromBufRead, ProcError, process::Process};
use unspin_events::vm_identity::{NAME_LENGTH_MAX, VmIdentity, VmKind, printable};

use crate::{cgroup::CgroupPlace, command_line::CommandLine, identity};

/// Only the beginning of a command line is looked at, bytes: libvirt's are some 6 kB, and names stand in front.
const COMMAND_BYTES_MAX: u64 = 64 << 10;
/// Only the beginning of the list of cgroups, bytes: a dozen hierarchies of paths of at most 4 kB.
const CGROUP_BYTES_MAX: u64 = 64 << 10;
/// Why a process that is there has no name.
const HIDDEN: &str =
    "its process may not be looked at (another user's, or /proc is mounted with hidepid)";

/// A VM's process, that incarnation of its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmProcess {
    /// Its number.
    pub process: u32,
    /// When it began, clock ticks since boot: another process with its number has begun later.
    pub start_ticks: u64,
    /// Its name, printable.
    pub comm: String,
    /// Who its VM is.
    pub identity: VmIdentity,
}

impl VmProcess {
    /// What people call it: its manager's name for it, else `firecracker (4321)`, program and process.
    pub fn called(&self) -> String {
        let by_process = || format!("{} ({})", self.comm, self.process);
        self.identity.called().unwrap_or_else(by_process)
    }
}

/// What a look at a process shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is there.
    Found(VmProcess),
    /// It is there and may not be looked at: it has no name here, and nobody else's.
    Hidden,
    /// There is none of that number.
    Ended,
}

/// Looks at the process of that number below `proc` (/proc). All that is read is of one incarnation: its folder stays open
/// meanwhile, and the kernel reads nothing of another process through it.
pub fn look(proc: &Path, process: u32) -> Look {
    look_if(proc, process, is_there)
}

fn look_if(proc: &Path, process: u32, is_there: fn(u32) -> bool) -> Look {
    match read(proc, process) {
        Ok(found) => Look::Found(found),
        // hidepid=1 shows the folder and refuses its files; hidepid=2 shows nothing (proc(5)).
        Err(ProcError::PermissionDenied(_)) => Look::Hidden,
        Err(_) if is_there(process) => Look::Hidden,
        Err(_) => Look::Ended,
    }
}

/// Whether a process of that number runs, whoever may see it.
fn is_there(process: u32) -> bool {
    let Ok(process) = libc::pid_t::try_from(process) else {
        return false;
    };
    // SAFETY: signal 0 is sent to nobody.
    let sent = unsafe { libc::kill(process, 0) };
    process > 0
        && (sent == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM))
}

fn read(proc: &Path, number: u32) -> Result<VmProcess, ProcError> {
    let process = Process::new_with_root(proc.join(number.to_string()))?;
    let stat = process.stat()?;
    let comm = printable(&stat.comm, NAME_LENGTH_MAX);
    Ok(VmProcess {
        process: number,
        start_ticks: stat.starttime,
        comm,
        identity: identity(&process)?,
    })
}

/// Who the process's VM is. A command line that may not be read is no error: the cgroup may say enough.
fn identity(process: &Process) -> Result<VmIdentity, ProcError> {
    let line = bytes(process, "cmdline", COMMAND_BYTES_MAX);
    let hidden = matches!(line, Err(ProcError::PermissionDenied(_)));
    let line = line
        .map(|line| CommandLine::parse(&line))
        .unwrap_or_default();
    let place = bytes(process, "cgroup", CGROUP_BYTES_MAX).unwrap_or_default();
    let mut known = identity::join(line, place_of(&place));
    if hidden && known.called().is_none() {
        known.name_problem = Some(HIDDEN.to_owned());
    }
    Ok(known)
}

/// Cut or strange lists say nothing.
fn place_of(list: &[u8]) -> CgroupPlace {
    let text = String::from_utf8_lossy(list);
    let cgroups = procfs::ProcessCGroups::from_buf_read(text.as_bytes());
    let cgroups = cgroups.map(|cgroups| cgroups.0).unwrap_or_default();
    CgroupPlace::of_paths(cgroups.iter().map(|cgroup| cgroup.pathname.as_str()))
}

fn bytes(process: &Process, file: &str, bytes_max: u64) -> Result<Vec<u8>, ProcError> {
    let mut bytes = Vec::new();
    let file = process.open_relative(file)?;
    BufReader::new(file)
        .take(bytes_max)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a process has a VM: a file of KVM's is open (`anon_inode:kvm-vm`, virt/kvm/kvm_main.c, Linux 7.2); `None`: its files
/// may not be looked at.
pub fn has_vm(proc: &Path, process: u32) -> Option<bool> {
    let files = std::fs::read_dir(proc.join(format!("{process}/fd"))).ok()?;
    Some(files.flatten().any(|file| {
        std::fs::read_link(file.path()).is_ok_and(|of| of == Path::new("anon_inode:kvm-vm"))
    }))
}

/// What people call the VM of a process of this host: its manager's name for it, else the program's; `None`: it has ended, or may
/// not be looked at.
pub fn name_of(process: u32) -> Option<String> {
    match look(Path::new("/proc"), process) {
        Look::Found(found) => Some(found.identity.called().unwrap_or(found.comm)),
        Look::Hidden | Look::Ended => None,
    }
}

/// Whether a program of that kind runs VMs.
pub(crate) fn runs_vms(kind: VmKind) -> bool {
    !matches!(kind, VmKind::Other | VmKind::Unspin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_shown_is_hidden_and_not_named() {
        let proc = tempfile::tempdir().expect("a folder");
        assert_eq!(look_if(proc.path(), 7, |_| true), Look::Hidden);
        assert_eq!(look_if(proc.path(), 7, |_| false), Look::Ended);
        assert!(is_there(std::process::id()) && !is_there(u32::MAX) && !is_there(0));
    }

    #[test]
    fn this_process_is_no_vm() {
        let Look::Found(own) = look(Path::new("/proc"), std::process::id()) else {
            panic!("it is there")
        };
        assert_eq!(own.identity.kind, VmKind::Other);
        assert_eq!(own.called(), format!("{} ({})", own.comm, own.process));
        assert_eq!(name_of(own.process), Some(own.comm.clone()));
        assert_eq!(name_of(u32::MAX), None);
        assert_eq!(has_vm(Path::new("/proc"), own.process), Some(false));
    }
}
