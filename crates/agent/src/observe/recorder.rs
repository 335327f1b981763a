// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drains an observer from a thread of its own, so that the ring does not run over while the caller is busy.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use unspin_events::Event;

use crate::{Error, Observer};

/// Records events until [`Recorder::finish`].
pub struct Recorder {
    stop: Sender<()>,
    thread: JoinHandle<Result<Recorded, Error>>,
}

/// What was recorded, and the observer, which has what it counted and counts no more.
pub struct Recorded {
    /// The observer that was given to `start`.
    pub observer: Observer,
    /// In the order in which they were written: almost, but not quite, by time.
    pub events: Vec<Event>,
    /// Events beyond `events_max`, or that this version could not decode.
    pub dropped: u64,
}

impl Recorder {
    /// Drains every `interval` from a new thread named `unspin-recorder`, and keeps at most `events_max` events (each
    /// takes some 64 bytes).
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(
        observer: Observer,
        interval: Duration,
        events_max: usize,
    ) -> std::io::Result<Recorder> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("unspin-recorder".to_owned())
            .spawn(move || {
                let mut recorded = Recorded {
                    observer,
                    events: Vec::new(),
                    dropped: 0,
                };
                loop {
                    let last = !matches!(
                        stopped.recv_timeout(interval),
                        Err(RecvTimeoutError::Timeout)
                    );
                    // Where events come faster than they are read there is no end before the programs are gone.
                    if last {
                        recorded.observer.detach();
                    }
                    recorded.drain(events_max, last)?;
                    if last {
                        return Ok(recorded);
                    }
                }
            })?;
        Ok(Recorder { stop, thread })
    }

    /// Detaches the observer's programs, drains what they have written and ends the thread.
    ///
    /// # Errors
    /// The first error that draining met.
    ///
    /// # Panics
    /// When the thread panicked.
    pub fn finish(self) -> Result<Recorded, Error> {
        // An error means that the thread has ended by itself, with an error of its own to tell.
        let _ = self.stop.send(());
        match self.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Recorded {
    /// All of it, or a part and the rest next time.
    fn drain(&mut self, events_max: usize, all: bool) -> Result<(), Error> {
        let Recorded {
            observer,
            events,
            dropped,
        } = self;
        let mut beyond = 0;
        let mut keep = |event| {
            if events.len() < events_max {
                events.push(event);
            } else {
                beyond += 1;
            }
        };
        let undecodable = if all {
            observer.drain(&mut keep)?
        } else {
            observer.drain_some(&mut keep)?
        };
        *dropped += beyond + undecodable;
        Ok(())
    }
}
