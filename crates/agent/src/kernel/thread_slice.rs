// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slice of one thread of the fair class (`sched_setattr()`, kernel/sched/syscalls.c, Linux 6.12 and later).
//!
//! Nothing here allocates: the guard calls it after a fork.

use std::{io, mem};

/// `struct sched_attr` of include/uapi/linux/sched/types.h, `SCHED_ATTR_SIZE_VER0`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// `SCHED_FLAG_RESET_ON_FORK`, the one flag of a thread of the fair class that is not about this call alone.
const KEPT_FLAGS: u64 = 1;

/// How a thread is scheduled.
#[derive(Clone, Copy)]
pub(crate) struct Scheduled(SchedAttr);

impl Scheduled {
    /// Of that thread; 0: the caller's.
    ///
    /// # Errors
    /// ESRCH: it has ended.
    pub(crate) fn of(thread: u32) -> io::Result<Scheduled> {
        let mut attr = SchedAttr::default();
        let size = mem::size_of::<SchedAttr>() as u32;
        // SAFETY: the kernel writes `size` bytes at most into `attr`, which lives until it returns.
        match unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attr, size, 0u32) } {
            0 => Ok(Scheduled(attr)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Whether the fair class runs it, in which threads have slices. `SCHED_IDLE` threads have them, too, and are left alone.
    pub(crate) fn is_fair(&self) -> bool {
        let policy = self.0.policy as i32;
        policy == libc::SCHED_OTHER || policy == libc::SCHED_BATCH
    }

    /// Its slice, ns; 0 before Linux 6.12.
    pub(crate) fn slice_ns(&self) -> u64 {
        self.0.runtime
    }

    /// Gives that thread, whose state this is, another slice; 0: the kernel's own. The rest stays.
    ///
    /// # Errors
    /// ESRCH: it has ended; EPERM: it is somebody else's.
    pub(crate) fn set_slice(mut self, thread: u32, slice_ns: u64) -> io::Result<()> {
        self.0.size = mem::size_of::<SchedAttr>() as u32;
        self.0.flags &= KEPT_FLAGS;
        self.0.runtime = slice_ns;
        // SAFETY: the kernel reads `size` bytes of it, and it lives until that returns.
        match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const self.0, 0u32) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The kernel's own slice, ns, if threads may have others: a thread that lives for that purpose is given one. `None`: they may not.
///
/// # Errors
/// When the kernel refuses a thread.
pub(crate) fn kernels_slice() -> io::Result<Option<u64>> {
    const OTHER_NS: u64 = 1_234_567;
    let look = || {
        let mut own = Scheduled::of(0)?;
        if !own.is_fair() {
            // As its parent was: this thread alone becomes one of the fair class.
            (own.0.policy, own.0.priority) = (libc::SCHED_OTHER as u32, 0);
        }
        own.set_slice(0, 0)?;
        let kernels_ns = Scheduled::of(0)?.slice_ns();
        own.set_slice(0, OTHER_NS)?;
        let has_other = Scheduled::of(0)?.slice_ns() == OTHER_NS;
        Ok(has_other.then_some(kernels_ns))
    };
    let thread = std::thread::Builder::new().spawn(look)?;
    thread.join().expect("it does not panic")
}

/// Whether threads may have slices of their own here.
pub(crate) fn has_thread_slices() -> bool {
    kernels_slice().is_ok_and(|kernels_ns| kernels_ns.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_a_slice_and_gives_it_back() {
        let Some(kernels_ns) = kernels_slice().expect("a thread") else {
            return; // Before Linux 6.12.
        };
        let thread = std::thread::spawn(move || {
            let before = Scheduled::of(0).expect("the caller's");
            assert_eq!(before.slice_ns(), kernels_ns);
            before.set_slice(0, 300_000).expect("its own");
            let now = Scheduled::of(0).expect("the caller's");
            assert_eq!((now.slice_ns(), now.0.nice), (300_000, before.0.nice));
            now.set_slice(0, 0).expect("its own");
            assert_eq!(
                Scheduled::of(0).expect("the caller's").slice_ns(),
                kernels_ns
            );
        });
        thread.join().expect("as it should be");
    }

    #[test]
    fn a_thread_that_is_gone_is_said() {
        // Beyond the largest number (PID_MAX_LIMIT, 2^22).
        assert!(Scheduled::of(1 << 23).is_err());
    }
}
