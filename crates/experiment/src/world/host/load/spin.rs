// SPDX-License-Identifier: MIT OR Apache-2.0
//! What threads of a load are made of: work of a length, timers, a place, a clock.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Work of a length, in loops that take no clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spin {
    loops_per_us: u64,
}

impl Spin {
    /// By the fastest of some tries, while all CPUs are as busy as they will be: siblings of a core share it.
    pub(super) fn calibrated(cpus: usize) -> Spin {
        const LOOPS: u64 = 20_000;
        let time_one = || {
            let begin = Instant::now();
            Spin::run(LOOPS);
            begin.elapsed().as_nanos() as u64
        };
        let over = AtomicBool::new(false);
        let fastest_ns = thread::scope(|scope| {
            for _ in 1..cpus {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        Spin::run(LOOPS);
                    }
                });
            }
            thread::sleep(Duration::from_millis(5));
            let fastest_ns = (0..20).map(|_| time_one()).min();
            over.store(true, Ordering::Relaxed);
            fastest_ns.unwrap_or(1).max(1)
        });
        Spin {
            loops_per_us: (LOOPS * 1000 / fastest_ns).max(1),
        }
    }

    fn run(loops: u64) {
        for number in 0..loops {
            black_box(number);
        }
    }

    pub(super) fn work(self, time: Duration) {
        Spin::run(self.loops_per_us * time.as_micros() as u64);
    }
}

/// The calling thread's timers expire when they are due, not up to 50 us later.
pub(super) fn exact_timers() {
    // SAFETY: takes numbers only. Where it fails timers stay as they were.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

pub(super) fn place_this_thread(nice: i32, cpu: Option<usize>) {
    // SAFETY: takes numbers only; 0 is the calling thread. A nice value above 0 is never refused.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    let Some(cpu) = cpu else { return };
    // SAFETY: a zeroed set is a valid, empty one, which outlives both calls; where the CPU is not ours the shares say so.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

pub(super) fn cpu_time_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call; of a clock whose thread has ended it stays 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
