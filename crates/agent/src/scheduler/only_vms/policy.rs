// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling policies of threads, and what of /proc tells threads and VMs apart.

use std::{fs, io, path::Path};

use crate::kernel::processes::numbers_in;

/// Tasks of a sched_ext scheduler that does not take all: `SCHED_EXT` of include/uapi/linux/sched.h, Linux 7.2. Where no scheduler
/// is attached the fair class runs them.
pub(super) const SCHED_EXT: i32 = 7;

/// A policy as sched_getscheduler(2) gives it: with `SCHED_RESET_ON_FORK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy(i32);

impl Policy {
    /// The one that a thread has without doing anything for it.
    pub(super) const OTHER: Policy = Policy(libc::SCHED_OTHER);

    /// Of a thread.
    ///
    /// # Errors
    /// ESRCH: it has ended.
    pub(super) fn of(thread: u32) -> io::Result<Policy> {
        // SAFETY: takes and returns numbers only.
        match unsafe { libc::sched_getscheduler(thread as libc::pid_t) } {
            -1 => Err(io::Error::last_os_error()),
            policy => Ok(Policy(policy)),
        }
    }

    /// The policy alone.
    fn class(self) -> i32 {
        self.0 & !libc::SCHED_RESET_ON_FORK
    }

    /// `SCHED_EXT`.
    pub(super) fn is_ext(self) -> bool {
        self.class() == SCHED_EXT
    }

    /// `SCHED_IDLE`.
    pub(super) fn is_idle(self) -> bool {
        self.class() == libc::SCHED_IDLE
    }

    /// `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`, and what later kernels may have.
    pub(super) fn is_real_time(self) -> bool {
        ![
            libc::SCHED_OTHER,
            libc::SCHED_BATCH,
            libc::SCHED_IDLE,
            SCHED_EXT,
        ]
        .contains(&self.class())
    }

    /// `SCHED_EXT` in its place, its `SCHED_RESET_ON_FORK` kept.
    pub(super) fn to_ext(self) -> Policy {
        Policy(SCHED_EXT | self.0 & libc::SCHED_RESET_ON_FORK)
    }

    /// Gives it to a thread, which keeps its nice value. Not for real-time policies, which need a priority.
    ///
    /// # Errors
    /// ESRCH: it has ended; EACCES, EPERM: the kernel does not let it.
    pub(super) fn set(self, thread: u32) -> io::Result<()> {
        let parameter = libc::sched_param { sched_priority: 0 };
        // SAFETY: reads `parameter`, which lives until it returns.
        match unsafe {
            libc::sched_setscheduler(thread as libc::pid_t, self.0, &raw const parameter)
        } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Gives a thread another nice value; what it had. `None`: it has ended, or may not have it.
pub(super) fn set_nice(thread: u32, nice: i32) -> Option<i32> {
    // SAFETY: both take and return numbers only; errno is this thread's.
    unsafe {
        *libc::__errno_location() = 0;
        let before = libc::getpriority(libc::PRIO_PROCESS, thread);
        // -1 is a nice value, too.
        let known = before != -1 || *libc::__errno_location() == 0;
        (known && libc::setpriority(libc::PRIO_PROCESS, thread, nice) == 0).then_some(before)
    }
}

/// When a thread began, in the kernel's ticks since it booted: a thread that has its number later began later. `None`: it has ended.
pub(super) fn born(process: u32, thread: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    born_in(&stat)
}

/// proc_pid_stat(5): `starttime` is the 22nd field; the second, the name in brackets, may hold anything.
fn born_in(stat: &str) -> Option<u64> {
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// Whether a process has a VM; not, where its files may not be looked at.
pub(super) fn has_vm(process: u32) -> bool {
    unspin_vms::has_vm(Path::new("/proc"), process).unwrap_or(false)
}

/// Threads of processes with VMs that have `SCHED_EXT` although no sched_ext scheduler is attached: a `steer` that was killed has left
/// them. What they had before is not known: they get `SCHED_OTHER`. How many there were.
pub(super) fn set_back_left_behind() -> usize {
    let mut set_back = 0;
    for process in numbers_in(Path::new("/proc")) {
        let mut threads = numbers_in(Path::new(&format!("/proc/{process}/task")));
        threads.retain(|thread| Policy::of(*thread).is_ok_and(Policy::is_ext));
        if !threads.is_empty() && has_vm(process) {
            let done = threads
                .iter()
                .filter(|thread| Policy::OTHER.set(**thread).is_ok());
            set_back += done.count();
        }
    }
    set_back
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_told_apart() {
        let reset = libc::SCHED_RESET_ON_FORK;
        for real_time in [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE, 9] {
            assert!(Policy(real_time).is_real_time());
            assert!(Policy(real_time | reset).is_real_time());
        }
        for fair in [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE] {
            assert!(!Policy(fair).is_real_time() && !Policy(fair | reset).is_ext());
            assert_eq!(Policy(fair).to_ext(), Policy(SCHED_EXT));
            assert_eq!(Policy(fair | reset).to_ext(), Policy(SCHED_EXT | reset));
        }
        assert!(Policy(SCHED_EXT | reset).is_ext() && !Policy(SCHED_EXT).is_real_time());
        assert!(Policy(libc::SCHED_IDLE | reset).is_idle());
    }

    #[test]
    fn a_thread_has_a_policy_until_it_ends() {
        assert!(!Policy::of(0).expect("the caller").is_real_time());
        // Beyond the largest number (PID_MAX_LIMIT, 2^22).
        assert!(Policy::of(1 << 23).is_err());
        Policy::OTHER.set(0).expect("what it has");
    }

    #[test]
    fn a_threads_beginning_is_found_behind_any_name() {
        let rest = "S 1 7 7 0 -1 4194560 11 0 0 0 1 2 0 0 20 0 4 0 4711 33 44";
        assert_eq!(born_in(&format!("12 (CPU 0/KVM) {rest}")), Some(4711));
        assert_eq!(born_in(&format!("12 (a) b (c)) {rest}")), Some(4711));
        assert_eq!(born_in("12 (a) S 1"), None);
        let own = std::process::id();
        assert!(born(own, own).is_some() && born(own, 1 << 23).is_none());
        assert!(!has_vm(own));
    }
}
