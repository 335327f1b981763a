// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs the threads of a run may use.

use std::{io, mem};

use crate::error::Error;

/// A set of CPUs that this process may use.
#[derive(Clone, Debug)]
pub struct Cpus {
    numbers: Vec<usize>,
}

/// The CPUs of this process's affinity mask, or the first `wanted` of them.
///
/// # Errors
/// When there are fewer than wanted, or the mask cannot be read.
pub fn allowed(wanted: Option<u32>) -> Result<Cpus, Error> {
    // SAFETY: a cpu_set_t is plain bits, all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the size is that of the set that the call fills.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Err(Error::Affinity(io::Error::last_os_error()));
    }
    let mut numbers: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
        // SAFETY: the number is below CPU_SETSIZE.
        .filter(|&number| unsafe { libc::CPU_ISSET(number, &set) })
        .collect();
    if let Some(wanted) = wanted {
        if numbers.len() < wanted as usize {
            return Err(Error::Cpus {
                wanted,
                there: numbers.len(),
            });
        }
        numbers.truncate(wanted as usize);
    }
    Ok(Cpus { numbers })
}

impl Cpus {
    /// How many.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Their numbers, ascending; at least one.
    pub fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// Lets the calling thread run on these only.
    pub fn confine_this_thread(&self) -> Result<(), Error> {
        // SAFETY: a cpu_set_t is plain bits, all zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        for &number in &self.numbers {
            // SAFETY: the numbers came out of such a set.
            unsafe { libc::CPU_SET(number, &mut set) };
        }
        // SAFETY: the size is that of the set that the call reads.
        if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } != 0 {
            return Err(Error::Affinity(io::Error::last_os_error()));
        }
        Ok(())
    }
}
