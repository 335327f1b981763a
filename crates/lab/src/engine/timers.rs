// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model by which the engine is measured: timers that only set themselves again. `unspin bench engine` runs the
//! same model in other simulators (crates/experiment/baselines), which must give the same events and the same checksum.

use super::WinnerTree;

/// Random bits of a delay, which is 1 to 2^20 ns.
pub const DELAY_BITS: u32 = 20;

/// The events up to the horizon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiries {
    /// Their number.
    pub events: u64,
    /// The sum of their times, ns, modulo 2^64: independent of the order of events at one time.
    pub checksum: u64,
}

/// Timers, each with its own generator, at their first setting.
#[derive(Clone, Debug)]
pub struct Timers {
    pending: WinnerTree,
    states: Vec<u64>,
}

/// The mean delay, ns, rounded down: of 1 to 2^20.
pub const DELAY_MEAN_NS: u64 = 1 << (DELAY_BITS - 1);

impl Timers {
    /// # Panics
    /// As [`WinnerTree::new`].
    pub fn new(timers: u32, seed: u64) -> Timers {
        let mut pending = WinnerTree::new(timers);
        let mut states: Vec<u64> = (0..timers).map(|timer| random_start(seed, timer)).collect();
        for (timer, state) in states.iter_mut().enumerate() {
            pending.set(timer as u32, delay_ns(state));
        }
        Timers { pending, states }
    }

    /// Runs all events up to and including `horizon_ns`. The horizon must be so far below the tree's
    /// [`NEVER_NS`](super::NEVER_NS) that no delay reaches it.
    pub fn run(&mut self, horizon_ns: u64) -> Expiries {
        let mut expiries = Expiries::default();
        loop {
            let (now_ns, timer) = self.pending.next();
            if now_ns > horizon_ns {
                return expiries;
            }
            expiries.events += 1;
            expiries.checksum = expiries.checksum.wrapping_add(now_ns);
            let delay_ns = delay_ns(&mut self.states[timer as usize]);
            self.pending.set(timer, now_ns + delay_ns);
        }
    }
}

fn delay_ns(state: &mut u64) -> u64 {
    (random_next(state) >> (u64::BITS - DELAY_BITS)) + 1
}

/// splitmix64, as `random_next` of locks/parts/work.h.
fn random_next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A timer's initial state, as `random_start` of locks/parts/work.h.
fn random_start(seed: u64, number: u32) -> u64 {
    let mut state = seed ^ u64::from(number) << 32;
    random_next(&mut state);
    random_next(&mut state).wrapping_add(u64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each timer alone, without a queue.
    fn one_by_one(timers: u32, seed: u64, horizon_ns: u64) -> Expiries {
        let mut expiries = Expiries::default();
        for timer in 0..timers {
            let mut state = random_start(seed, timer);
            let mut now_ns = delay_ns(&mut state);
            while now_ns <= horizon_ns {
                expiries.events += 1;
                expiries.checksum = expiries.checksum.wrapping_add(now_ns);
                now_ns += delay_ns(&mut state);
            }
        }
        expiries
    }

    #[test]
    fn every_expiry_is_counted_once() {
        for (timers, seed) in [(1, 0), (3, 1), (8, 42), (65, u64::MAX)] {
            for horizon_ns in [0, DELAY_MEAN_NS, 300 * DELAY_MEAN_NS] {
                let expected = one_by_one(timers, seed, horizon_ns);
                assert_eq!(Timers::new(timers, seed).run(horizon_ns), expected);
            }
        }
    }

    #[test]
    fn delays_have_the_mean_they_should() {
        let events = Timers::new(64, 7).run(1_000 * DELAY_MEAN_NS).events;
        // 64,000 draws, uniform: a standard error of 0.23 %.
        assert!((63_400..64_600).contains(&events), "{events}");
    }

    /// As locks/parts/work.h gives them: guest and lab draw the same numbers.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut state = 0;
        assert_eq!(random_next(&mut state), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random_next(&mut state), 0x6e78_9e6a_a1b9_65f4);
    }
}
