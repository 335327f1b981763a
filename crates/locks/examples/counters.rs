// SPDX-License-Identifier: MIT OR Apache-2.0
//! Eight threads on however many CPUs count together: `cargo run --release -p unspin-locks --example counters`.

use std::{thread, time::Instant};

use unspin_locks::{
    LinuxMutex, ParavirtualPreemptableTicketMutex, UnspinMutex,
    lock_api::{Mutex, RawMutex},
};

const THREADS: u64 = 8;
const ROUNDS: u64 = 100_000;

fn count<Raw: RawMutex + Sync>(name: &str, sum: &Mutex<Raw, u64>) {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..ROUNDS).for_each(|_| *sum.lock() += 1));
        }
    });
    assert_eq!(*sum.lock(), THREADS * ROUNDS);
    println!(
        "{name}: counted to {} in {:.0?}",
        sum.lock(),
        began.elapsed()
    );
}

fn main() {
    count("mutex", &UnspinMutex::new(0));
    count("linux_mutex", &LinuxMutex::new(0));
    count(
        "paravirtual_preemptable_ticket",
        &ParavirtualPreemptableTicketMutex::new(0),
    );
}
