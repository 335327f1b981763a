// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading the kernel's BTF and loading BPF programs is seconds of CPU time, and the hosts that need ours have none to spare:
//! the thread that attaches is of the highest nice value meanwhile.

use std::io;

const HIGHEST: libc::c_int = -20;

/// The calling thread goes first among ordinary ones until this is dropped, on the same thread. Where it may not, nothing
/// changes.
#[derive(Debug)]
pub(crate) struct NicenessGuard {
    before: Option<libc::c_int>,
}

impl NicenessGuard {
    pub(crate) fn begin() -> NicenessGuard {
        let before = nice().filter(|_| set_nice(HIGHEST));
        NicenessGuard { before }
    }
}

impl Drop for NicenessGuard {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_nice(before);
        }
    }
}

/// Of the calling thread: 0 is that (setpriority(2), "C library/kernel differences").
fn nice() -> Option<libc::c_int> {
    // SAFETY: errno is this thread's, and both functions take and return numbers only.
    unsafe {
        *libc::__errno_location() = 0;
        let nice = libc::getpriority(libc::PRIO_PROCESS, 0);
        // -1 is a nice value, too.
        (nice != -1 || io::Error::last_os_error().raw_os_error() == Some(0)).then_some(nice)
    }
}

fn set_nice(nice: libc::c_int) -> bool {
    // SAFETY: takes and returns numbers only.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_as_nice_as_before_afterwards() {
        let before = nice();
        let niceness = NicenessGuard::begin();
        // Whoever may not raise it stays as he is.
        assert!(niceness.before.is_none() || nice() == Some(HIGHEST));
        drop(niceness);
        assert_eq!(nice(), before);
    }
}
