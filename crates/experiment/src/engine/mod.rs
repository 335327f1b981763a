// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events a second of the lab's engine, and of other simulators on the same model (`unspin bench engine`).

mod baselines;
mod rows;

use std::{sync::atomic::Ordering, time::Instant};

pub use baselines::{Baseline, BaselineKind};
pub use rows::{EngineRow, row};
use unspin_lab::engine::timers::{DELAY_MEAN_NS, Expiries, Timers};

use crate::{Error, Session, Work};

/// A baseline gets so many times fewer events: it takes that much longer for each.
const BASELINE_SHARE: u64 = 40;

/// One engine with one number of timers.
pub struct Contest {
    /// Timers.
    pub timers: u32,
    seed: u64,
    horizon_ns: u64,
    /// Events a second, by round.
    pub rates: Vec<f64>,
    /// Events of the last round.
    pub events: u64,
}

/// The lab's engine and, in their order, the baselines, with one number of timers.
pub struct Contests {
    /// The lab's.
    pub ours: Contest,
    /// The baselines'.
    pub theirs: Vec<Contest>,
}

/// What runs.
pub struct Rounds<'a> {
    /// Numbers of timers.
    pub timers: &'a [u32],
    /// Rounds, in which all run in turn.
    pub rounds: u32,
    /// Events of the lab's engine in a round, about.
    pub events: u64,
    /// From which all delays are drawn.
    pub seed: u64,
}

/// Runs every engine in turn, round after round.
///
/// # Errors
/// A baseline that fails, or does not come to our events and our checksum; an interrupt.
pub fn run(
    what: &Rounds<'_>,
    baselines: &[Baseline],
    session: &Session<'_>,
) -> Result<Vec<Contests>, Error> {
    let steps = what.timers.len() * what.rounds as usize * (1 + baselines.len());
    session.progress.begin("measuring", Work::Steps(steps));
    let measured = rounds(what, baselines, session);
    session.progress.end();
    measured
}

fn rounds(
    what: &Rounds<'_>,
    baselines: &[Baseline],
    session: &Session<'_>,
) -> Result<Vec<Contests>, Error> {
    let (mut done, mut all) = (0, Vec::new());
    for &timers in what.timers {
        let mut ours = Contest::new(timers, what.seed, what.events);
        let theirs = || Contest::new(timers, what.seed, (what.events / BASELINE_SHARE).max(1));
        let mut theirs: Vec<Contest> = baselines.iter().map(|_| theirs()).collect();
        for round in 0..what.rounds {
            // There and back again: nobody is always first.
            for place in 0..=baselines.len() {
                let place = if round % 2 == 0 {
                    place
                } else {
                    baselines.len() - place
                };
                if session.interrupt.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                match place.checked_sub(1) {
                    None => ours.run_ours(),
                    Some(baseline) => theirs[baseline].run_baseline(&baselines[baseline])?,
                }
                done += 1;
                session.progress.done(done);
            }
        }
        all.push(Contests { ours, theirs });
    }
    Ok(all)
}

impl Contest {
    /// About so many events.
    fn new(timers: u32, seed: u64, events: u64) -> Contest {
        Contest {
            timers,
            seed,
            horizon_ns: events.saturating_mul(DELAY_MEAN_NS) / u64::from(timers),
            rates: Vec::new(),
            events: 0,
        }
    }

    fn run_ours(&mut self) {
        let mut timers = Timers::new(self.timers, self.seed);
        let begin = Instant::now();
        let Expiries { events, .. } = std::hint::black_box(timers.run(self.horizon_ns));
        self.rates
            .push(events as f64 / begin.elapsed().as_secs_f64());
        self.events = events;
    }

    /// Fails unless the baseline comes to our events and our checksum.
    fn run_baseline(&mut self, baseline: &Baseline) -> Result<(), Error> {
        let (theirs, seconds) = baseline.run(self.timers, self.horizon_ns, self.seed)?;
        let ours = Timers::new(self.timers, self.seed).run(self.horizon_ns);
        if theirs != ours {
            let what = format!(
                "{} came to {theirs:?}, unspin to {ours:?}",
                baseline.version()
            );
            return Err(Error::Failed(anyhow::anyhow!(what)));
        }
        self.rates.push(theirs.events as f64 / seconds);
        self.events = theirs.events;
        Ok(())
    }

    /// The best rate of all rounds, events a second.
    pub fn best(&self) -> f64 {
        self.rates.iter().copied().fold(f64::NAN, f64::max)
    }
}
