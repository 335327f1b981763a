// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words in caches.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use super::{SAMPLES, pin_to, tries};
use crate::error::Error;

const ADDITIONS: u32 = 50_000;
/// There and back.
const ROUNDS: u32 = 500;

/// A word alone on its line, and on the line that is fetched with it.
#[repr(align(128))]
struct Word(AtomicU32);

/// An atomic addition to a word of one's own, ns.
pub fn own() -> Vec<f64> {
    let word = Word(AtomicU32::new(0));
    tries(|| {
        let begin = Instant::now();
        for _ in 0..ADDITIONS {
            word.0.fetch_add(1, Ordering::Relaxed);
        }
        begin.elapsed().as_nanos() as f64 / f64::from(ADDITIONS)
    })
}

/// A word that two CPUs write in turn, each when it has seen the other's value; ns from one write to the next.
pub fn hand_over(other: usize) -> Result<Vec<f64>, Error> {
    let word = Word(AtomicU32::new(0));
    let spins = SAMPLES as u32 * ROUNDS;
    let gate = Barrier::new(2);
    let play = |first: u32, rounds: u32| {
        for round in 0..rounds {
            let mine = first + 2 * round;
            while word.0.load(Ordering::Acquire) != mine {
                std::hint::spin_loop();
            }
            word.0.store(mine + 1, Ordering::Release);
        }
    };
    std::thread::scope(|scope| {
        let partner = scope.spawn(|| {
            let pinned = pin_to(other);
            gate.wait();
            // Played in any case: the other side waits for it.
            play(1, spins);
            pinned
        });
        gate.wait();
        let samples = (0..SAMPLES as u32).map(|sample| {
            let begin = Instant::now();
            play(2 * sample * ROUNDS, ROUNDS);
            begin.elapsed().as_nanos() as f64 / f64::from(2 * ROUNDS)
        });
        let samples = samples.collect();
        partner.join().expect("it does not panic")?;
        Ok(samples)
    })
}
