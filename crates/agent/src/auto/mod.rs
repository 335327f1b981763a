// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy `auto`: each VM gets the policies under which it does most, by what the host sees.

mod controller;
mod meter;

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Instant,
};

use crate::{SteerError, Steerer};

pub use controller::{AutoController, AutoStep};
pub use meter::UsefulTimeMeter;

/// A controller at work, in a thread of its own, until [`AutoSteering::end`] or it is dropped; then VMs have everyone's policies again.
pub struct AutoSteering {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<AutoController, SteerError>>>,
    steps: Receiver<AutoStep>,
}

impl AutoSteering {
    /// Goes on with what that controller has learned, in that scheduler.
    ///
    /// # Errors
    /// When no thread can be made, or the kernel refuses to write a map.
    pub fn start(
        mut controller: AutoController,
        steerer: &Steerer,
    ) -> Result<AutoSteering, SteerError> {
        let decided = steerer.decided()?;
        let (stop, stopped) = mpsc::channel();
        let (send, steps) = mpsc::channel();
        controller.resume(&decided)?;
        let work = move || {
            loop {
                let left = controller.next().saturating_duration_since(Instant::now());
                if !matches!(stopped.recv_timeout(left), Err(RecvTimeoutError::Timeout)) {
                    decided.reset_auto()?;
                    return Ok(controller);
                }
                for step in controller.poll(&decided)? {
                    // Whoever started it need not listen.
                    let _ = send.send(step);
                }
            }
        };
        let thread = thread::Builder::new().name("unspin-auto".to_owned());
        let thread = thread.spawn(work).map_err(|source| SteerError::File {
            path: "a thread for the policy auto".into(),
            source,
        })?;
        Ok(AutoSteering {
            stop: Some(stop),
            thread: Some(thread),
            steps,
        })
    }

    /// The epochs that have ended since the last call.
    pub fn steps(&self) -> impl Iterator<Item = AutoStep> + '_ {
        self.steps.try_iter()
    }

    /// Whether it has ended by itself: then [`AutoSteering::end`] says why.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// VMs have everyone's policies again; what was learned.
    ///
    /// # Errors
    /// When the kernel has refused to read or write a map meanwhile.
    pub fn end(mut self) -> Result<AutoController, SteerError> {
        self.stop = None;
        let thread = self.thread.take().expect("it is taken here alone");
        thread.join().expect("it does not panic")
    }
}

impl Drop for AutoSteering {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Nobody is there to be told of an error.
            let _ = thread.join();
        }
    }
}
