// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads with a cookie of core scheduling (`PR_SCHED_CORE`), which share a core with their like only. Where CPUs have siblings
//! (SMT), the kernel's core-wide pick and any sched_ext scheduler bring the whole host to a stop within milliseconds, without a
//! panic: <https://github.com/sched-ext/scx/issues/3715>, Linux 7.1. Cloud Hypervisor gives its vCPUs cookies by default.

use std::{fs, io, path::Path};

use super::SteerError;
use crate::kernel::processes::numbers_in;

/// # Errors
/// [`SteerError::CoreScheduling`] with every process that has such a thread. Cookies given later are not seen.
pub(super) fn check() -> Result<(), SteerError> {
    // EINVAL: a kernel without core scheduling. ENODEV: no siblings.
    if cookie_of(0).is_err() {
        return Ok(());
    }
    let processes = with_cookies(Path::new("/proc"), cookie_of);
    if processes.is_empty() {
        return Ok(());
    }
    Err(SteerError::CoreScheduling { processes })
}

/// A thread's cookie, 0 if it has none; thread 0 is the caller.
fn cookie_of(thread: u32) -> io::Result<u64> {
    const PIDTYPE_PID: libc::c_ulong = 0; // include/linux/pid_types.h
    let mut cookie = 0_u64;
    // SAFETY: the kernel writes 8 bytes to `cookie`, which lives until it returns (kernel/sched/core_sched.c, Linux 7.2).
    let status = unsafe {
        libc::prctl(
            libc::PR_SCHED_CORE,
            libc::PR_SCHED_CORE_GET,
            libc::c_ulong::from(thread),
            PIDTYPE_PID,
            &raw mut cookie,
        )
    };
    match status {
        0 => Ok(cookie),
        _ => Err(io::Error::last_os_error()),
    }
}

/// "name (process)" of each process with a thread that has one, in order of their numbers. A thread that ends meanwhile has none.
fn with_cookies(proc: &Path, cookie_of: impl Fn(u32) -> io::Result<u64>) -> Vec<String> {
    let mut processes = numbers_in(proc);
    processes.retain(|process| {
        let threads = numbers_in(&proc.join(process.to_string()).join("task"));
        threads
            .into_iter()
            .any(|thread| cookie_of(thread).is_ok_and(|cookie| cookie != 0))
    });
    let named = |process: u32| {
        let name = fs::read_to_string(proc.join(process.to_string()).join("comm"));
        format!("{} ({process})", name.unwrap_or_default().trim())
    };
    processes.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_with_a_tagged_thread_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        for (process, name, threads) in [
            (12, "libvirtd\n", vec![12, 13]),
            (7, "cloud-hyperviso\n", vec![7, 9]),
            (20, "gone\n", vec![21]),
        ] {
            let process = folder.path().join(process.to_string());
            for thread in threads {
                fs::create_dir_all(process.join("task").join(thread.to_string())).expect("it");
            }
            fs::write(process.join("comm"), name).expect("a file");
        }
        fs::create_dir(folder.path().join("sys")).expect("no process");
        let cookie_of = |thread| match thread {
            9 | 13 => Ok(0xffff_8880_1234_0000),
            21 => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            _ => Ok(0),
        };
        let named = with_cookies(folder.path(), cookie_of);
        assert_eq!(named, ["cloud-hyperviso (7)", "libvirtd (12)"]);
        let said = SteerError::CoreScheduling { processes: named }.to_string();
        assert!(
            said.contains("cloud-hyperviso (7), libvirtd (12)"),
            "{said}"
        );
        assert_eq!(with_cookies(folder.path(), |_| Ok(0)), Vec::<String>::new());
    }

    /// This very process has none, or the kernel does not know of cookies or siblings, and then nobody has.
    #[test]
    fn the_kernel_is_asked() {
        match cookie_of(0) {
            Ok(cookie) => assert_eq!(cookie, 0),
            Err(error) => {
                let known = [Some(libc::EINVAL), Some(libc::ENODEV)];
                assert!(known.contains(&error.raw_os_error()), "{error}");
                assert!(check().is_ok());
            }
        }
    }
}
