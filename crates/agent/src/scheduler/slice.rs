// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slice that the kernel's own scheduler gives.

use std::{fs, io};

use super::SteerError;

/// Where the slice was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceSource {
    /// /sys/kernel/debug/sched/base_slice_ns.
    DebugFs,
    /// debugfs is not mounted or not readable: by the kernel's rule for its default.
    Rule,
}

const FILE: &str = "/sys/kernel/debug/sched/base_slice_ns";

/// The kernel's `base_slice_ns`, and where that was found.
///
/// # Errors
/// When debugfs has it and what it says is no number above 0.
pub fn base_slice() -> Result<(u64, SliceSource), SteerError> {
    let Ok(text) = fs::read_to_string(FILE) else {
        return Ok((by_rule(online_cpus()), SliceSource::Rule));
    };
    match text.trim().parse() {
        Ok(slice_ns) if slice_ns > 0 => Ok((slice_ns, SliceSource::DebugFs)),
        _ => Err(SteerError::File {
            path: FILE.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidData, format!("`{}`", text.trim())),
        }),
    }
}

/// kernel/sched/fair.c, Linux 7.2: sysctl_sched_base_slice is 0.7 ms times get_update_sysctl_factor(), 1 + log2 of the
/// online CPUs, of which 8 count at most.
fn by_rule(online_cpus: u32) -> u64 {
    700_000 * u64::from(1 + online_cpus.clamp(1, 8).ilog2())
}

fn online_cpus() -> u32 {
    // SAFETY: takes a number, touches no memory of ours.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(online).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_rule() {
        let slices: Vec<u64> = [0, 1, 2, 3, 4, 8, 128].map(by_rule).into();
        let ms: Vec<f64> = slices.iter().map(|ns| *ns as f64 / 1e6).collect();
        assert_eq!(ms, [0.7, 0.7, 1.4, 1.4, 2.1, 2.8, 2.8]);
    }
}
