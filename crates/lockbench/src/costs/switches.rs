// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches between threads, and wake-ups.

use std::{
    mem,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Instant,
};

use super::{SAMPLES, median, pin_to, tries};
use crate::{error::Error, ffi};

const YIELDS: u32 = 400;
const WAKES: u32 = 20;
/// Long enough for a thread to fall asleep, loops of work.
const ASLEEP_LOOPS: u32 = 50_000;

/// How often the calling thread was switched away from, willing or not.
pub fn switches_of_this_thread() -> u64 {
    // SAFETY: plain integers, all zero is a value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: the kernel fills the struct of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

/// Two threads on one CPU that yield to one another, less one that yields to nobody, per switch, ns.
pub fn switch(cpu: usize) -> Result<Vec<f64>, Error> {
    let alone = tries(|| yields_ns() / f64::from(YIELDS));
    let alone_ns = median(alone);
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        samples.extend(switch_once(cpu, alone_ns)?);
    }
    Ok(samples)
}

/// `None` where they did not switch.
fn switch_once(cpu: usize, alone_ns: f64) -> Result<Option<f64>, Error> {
    let (gate, done) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let pinned = pin_to(cpu);
            gate.wait();
            let mut yields = 0u32;
            while !done.load(Ordering::Relaxed) {
                std::thread::yield_now();
                yields += 1;
            }
            pinned.map(|()| (yields, switches_of_this_thread()))
        });
        gate.wait();
        std::thread::yield_now();
        let before = switches_of_this_thread();
        let elapsed_ns = yields_ns();
        let switches = switches_of_this_thread() - before;
        done.store(true, Ordering::Relaxed);
        let (theirs, _) = partner.join().expect("it does not panic")?;
        // Each switch away from here is followed by one back.
        let calls = f64::from(YIELDS) + f64::from(theirs.min(YIELDS));
        let in_switches_ns = elapsed_ns - calls * alone_ns;
        Ok((switches > 0).then(|| (in_switches_ns / (2 * switches) as f64).max(0.0)))
    })
}

fn yields_ns() -> f64 {
    let begin = Instant::now();
    for _ in 0..YIELDS {
        std::thread::yield_now();
    }
    begin.elapsed().as_nanos() as f64
}

/// FUTEX_WAKE of a thread that sleeps on another CPU, less one that wakes nobody, ns of the waker.
pub fn wakeup(other: usize) -> Result<Vec<f64>, Error> {
    let (word, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    let nobody_ns = median(tries(|| {
        let begin = Instant::now();
        for _ in 0..WAKES {
            wake(&word);
        }
        begin.elapsed().as_nanos() as f64 / f64::from(WAKES)
    }));
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let pinned = pin_to(other);
            while !stop.load(Ordering::Acquire) {
                sleep(&word);
            }
            pinned
        });
        let samples = tries(|| wake_ns(&word, nobody_ns));
        stop.store(true, Ordering::Release);
        while !sleeper.is_finished() {
            wake(&word);
            std::thread::yield_now();
        }
        sleeper.join().expect("it does not panic").map(|()| samples)
    })
}

/// The mean of some wake-ups that woke somebody.
fn wake_ns(word: &AtomicU32, nobody_ns: f64) -> f64 {
    let mut total_ns = 0.0;
    let mut woken = 0;
    while woken < WAKES {
        // SAFETY: the count is not 0.
        unsafe { ffi::driver_time_work(ASLEEP_LOOPS) };
        let begin = Instant::now();
        if wake(word) == 1 {
            total_ns += begin.elapsed().as_nanos() as f64;
            woken += 1;
        }
    }
    (total_ns / f64::from(WAKES) - nobody_ns).max(0.0)
}

fn wake(word: &AtomicU32) -> libc::c_long {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call; FUTEX_WAKE reads nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) }
}

fn sleep(word: &AtomicU32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let no_time_limit = std::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call, and there is no time limit to read.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 0, no_time_limit) };
}
