// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which host CPUs a thread may use.
use std::{io, mem::size_of};

/// How many of the CPUs 0..`end` the calling thread may use; `end` above CPU_SETSIZE (1,024) counts as that.
pub fn allowed_below(end: u32) -> u32 {
    // SAFETY: cpu_set_t is an array of integers, for which zero is a valid value: the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size passed, which is that of `set`.
    let read = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    assert_eq!(read, 0, "sched_getaffinity of the calling thread");
    let end = (end as usize).min(libc::CPU_SETSIZE as usize);
    // SAFETY: CPU_ISSET indexes below CPU_SETSIZE.
    (0..end)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .count() as u32
}

/// Confines the calling thread to the CPUs 0..`end` (1 to CPU_SETSIZE).
///
/// # Errors
/// The kernel's: EINVAL when none of them is there.
pub fn confine_to_first(end: u32) -> io::Result<()> {
    // SAFETY: as above.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in 0..(end as usize).min(libc::CPU_SETSIZE as usize) {
        // SAFETY: CPU_SET indexes below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the kernel reads the size passed, which is that of `set`.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confined_thread_may_use_what_it_was_given() {
        let (before, inside) = std::thread::spawn(|| {
            let before = allowed_below(u32::MAX);
            confine_to_first(1).expect("CPU 0 is there");
            (before, allowed_below(u32::MAX))
        })
        .join()
        .expect("the thread ends");
        assert_eq!(inside, 1);
        assert!(before >= 1);
        assert_eq!(allowed_below(0), 0);
    }
}
