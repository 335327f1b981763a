// SPDX-License-Identifier: MIT OR Apache-2.0
//! How whoever waits for an experiment learns how far it is, and ends it early.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::Error;

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Not known in steps.
    Unknown,
    /// So many steps, of any length each.
    Steps(usize),
    /// So many steps that take about as long each: what is left can be told.
    EvenSteps(usize),
}

/// Who is told how far it is. Called by the thread that began the experiment.
pub trait Progress {
    /// A work begins; it replaces the one before.
    fn begin(&self, _what: &str, _work: Work) {}
    /// What of it goes on now.
    fn say(&self, _what: &str) {}
    /// A step of many minutes' work is done: a line that stays, also when the work is killed later.
    fn line(&self, _line: &str) {}
    /// So many of the steps are done.
    fn done(&self, _steps: usize) {}
    /// The work is over.
    fn end(&self) {}
}

/// Nobody is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {}

/// What an experiment has from whoever began it.
pub struct Session<'a> {
    /// Who is told how far it is.
    pub progress: &'a dyn Progress,
    /// Set from anywhere, at any time: ends the experiment in order, with [`Error::Interrupted`](crate::Error::Interrupted).
    pub interrupt: Arc<AtomicBool>,
}

impl Session<'_> {
    /// Nobody is told, nobody interrupts.
    pub fn quiet() -> Session<'static> {
        Session {
            progress: &Quiet,
            interrupt: Arc::default(),
        }
    }

    /// Sleeps for so long.
    ///
    /// # Errors
    /// [`Error::Interrupted`], a tenth of a second after the interrupt at most.
    pub fn sleep(&self, time: Duration) -> Result<(), Error> {
        let end = Instant::now() + time;
        loop {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}
