// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this program itself takes of the host.

use std::{fs, mem::MaybeUninit};

/// CPU time and memory of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnCost {
    /// In user and kernel mode since it began; s.
    pub cpu_seconds: f64,
    /// Resident memory; bytes.
    pub resident_bytes: u64,
}

impl OwnCost {
    /// Up to now; 0 where the system does not tell.
    pub fn now() -> OwnCost {
        OwnCost {
            cpu_seconds: cpu_seconds(),
            resident_bytes: resident_bytes(),
        }
    }
}

fn cpu_seconds() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a live struct of that type, which the call writes; zeroes are a valid value of it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    // SAFETY: takes and returns numbers only.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0) * u64::try_from(page_bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_takes_something() {
        let began = OwnCost::now();
        assert!(began.resident_bytes > 1 << 16, "{began:?}");
        let mut sum = 0u64;
        for step in 0..50_000_000u64 {
            sum = std::hint::black_box(sum ^ step);
        }
        assert!(OwnCost::now().cpu_seconds > began.cpu_seconds, "{sum}");
    }
}
