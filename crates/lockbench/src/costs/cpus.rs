// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs while something is timed: a thread that stays on one, and threads that keep the others busy.

use std::{
    io, mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
};

use crate::{error::Error, ffi};

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

/// One thread on each of some CPUs, until it is dropped.
pub struct CpuHogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl CpuHogs {
    /// On all of `cpus` but those `left_out`; returns when all run.
    pub fn start(cpus: &[usize], left_out: &[usize]) -> CpuHogs {
        let stop = Arc::new(AtomicBool::new(false));
        let running = Arc::new(AtomicUsize::new(0));
        let wanted = cpus.iter().filter(|cpu| !left_out.contains(cpu));
        let threads: Vec<_> = wanted
            .map(|&cpu| {
                let (stop, running) = (Arc::clone(&stop), Arc::clone(&running));
                std::thread::spawn(move || {
                    // Anywhere is better than nowhere: the CPU may have gone.
                    let _ = pin_to(cpu);
                    running.fetch_add(1, Ordering::Release);
                    while !stop.load(Ordering::Relaxed) {
                        // SAFETY: the count is not 0.
                        unsafe { ffi::driver_time_work(10_000) };
                    }
                })
            })
            .collect();
        while running.load(Ordering::Acquire) < threads.len() {
            std::thread::yield_now();
        }
        CpuHogs { stop, threads }
    }
}

impl Drop for CpuHogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
