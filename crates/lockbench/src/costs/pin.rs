// SPDX-License-Identifier: MIT OR Apache-2.0
//! One thread, one CPU.

use std::{io, mem};

use crate::error::Error;

/// Lets the calling thread run on that CPU only.
///
/// # Errors
/// When this process may not use it.
pub fn pin_to(cpu: usize) -> Result<(), Error> {
    // SAFETY: a cpu_set_t is plain bits, all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the number came out of such a set, or is refused by the bound of the macro's own index.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the size is that of the set that the call reads.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(Error::Affinity(io::Error::last_os_error())),
    }
}
