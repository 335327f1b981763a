// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of the host.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{median, pin_to};
use crate::{error::Error, ffi};

/// linux/membarrier.h.
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
const CALLS: u32 = 2_000;
const CALLS_LEAST: usize = 50;
/// A call that sends an interrupt takes so many times one that does not, at least.
const SENT_RATIO: f64 = 1.5;

/// Ticks to be seen in all: 250 of them take a second at CONFIG_HZ=250.
const TICKS_TIME: Duration = Duration::from_millis(200);
/// A gap is what takes longer than this many looks at the clock do.
const LOOKS_OF_A_GAP: u32 = 16;

/// How long the timer interrupt keeps a thread, ns: the gaps in a loop that looks at the clock.
pub fn tick() -> Vec<f64> {
    let gap = look_time() * LOOKS_OF_A_GAP;
    let mut gaps = Vec::new();
    let begin = Instant::now();
    let mut last = begin;
    while last - begin < TICKS_TIME {
        let now = Instant::now();
        if now - last > gap {
            gaps.push((now - last).as_nanos() as f64);
        }
        last = now;
    }
    gaps
}

fn look_time() -> Duration {
    const LOOKS: u32 = 1_000;
    let begin = Instant::now();
    for _ in 1..LOOKS {
        std::hint::black_box(Instant::now());
    }
    (Instant::now() - begin) / LOOKS
}

/// Expedited barriers beside another CPU that runs a thread of this process (an interrupt, its handler and the news of
/// it), less one beside none, ns. Calls that took no longer met the other CPU with somebody else on it and do not count.
/// Empty where the kernel has no such barrier, or hardly a call counts.
pub fn ipi(other: usize) -> Result<Vec<f64>, Error> {
    if membarrier(REGISTER_PRIVATE_EXPEDITED) != 0 {
        return Ok(Vec::new());
    }
    let alone_ns = median(barriers_ns());
    let (stop, gate) = (AtomicBool::new(false), Barrier::new(2));
    let beside = std::thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let pinned = pin_to(other);
            gate.wait();
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: the count is not 0.
                unsafe { ffi::driver_time_work(1_000) };
            }
            pinned
        });
        gate.wait();
        let calls = barriers_ns();
        stop.store(true, Ordering::Relaxed);
        partner.join().expect("it does not panic").map(|()| calls)
    })?;
    let sent = beside.into_iter().filter(|ns| *ns > SENT_RATIO * alone_ns);
    let beyond: Vec<f64> = sent.map(|ns| ns - alone_ns).collect();
    Ok(match beyond.len() >= CALLS_LEAST {
        true => beyond,
        false => Vec::new(),
    })
}

/// Each of many calls.
fn barriers_ns() -> Vec<f64> {
    let one = |_| {
        let begin = Instant::now();
        membarrier(PRIVATE_EXPEDITED);
        begin.elapsed().as_nanos() as f64
    };
    (0..CALLS).map(one).collect()
}

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: takes two integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}
