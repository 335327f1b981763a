// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy `auto`: each VM gets the policies under which it does most, by what the host sees.

mod controller;
mod epochs;
mod meter;

use std::{
    collections::BTreeSet,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Instant,
};

use unspin_policy::auto::{AutoSet, AutoStep};

use crate::{SteerError, Steerer, scheduler::Decided};

pub use controller::AutoController;
pub use epochs::{EpochRow, Epochs, Explained, Numbered};
pub use meter::UsefulTimeMeter;
pub(crate) use meter::VcpuThreads;

/// What gives VMs the sets that are chosen for them.
pub(crate) trait Actuator: Send {
    /// The VMs' processes for which somebody else has chosen.
    fn by_hand(&mut self) -> Result<BTreeSet<u32>, SteerError>;

    /// The VM has that set from now on, or, where [`Actuator::given`] does something, from then on; false: not, somebody else has
    /// chosen, or it is gone.
    fn give(&mut self, process: u32, set: AutoSet) -> Result<bool, SteerError>;

    /// All that is new has been given: an epoch begins.
    fn given(&mut self) -> Result<(), SteerError> {
        Ok(())
    }

    /// Nothing that was given stays. Nothing is given any more.
    fn take_back(&mut self) -> Result<(), SteerError>;
}

impl Actuator for Decided {
    fn by_hand(&mut self) -> Result<BTreeSet<u32>, SteerError> {
        Decided::by_hand(self)
    }

    fn give(&mut self, process: u32, set: AutoSet) -> Result<bool, SteerError> {
        self.set_vm_by_auto(process, set.policies())
    }

    fn take_back(&mut self) -> Result<(), SteerError> {
        self.reset_auto()
    }
}

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
        controller: AutoController,
        steerer: &Steerer,
    ) -> Result<AutoSteering, SteerError> {
        AutoSteering::start_with(controller, steerer.decided()?)
    }

    /// The same, where sets are given by that.
    pub(crate) fn start_with(
        mut controller: AutoController,
        mut actuator: impl Actuator + 'static,
    ) -> Result<AutoSteering, SteerError> {
        let (stop, stopped) = mpsc::channel();
        let (send, steps) = mpsc::channel();
        controller.resume(&mut actuator)?;
        let work = move || {
            loop {
                let left = controller.next().saturating_duration_since(Instant::now());
                if !matches!(stopped.recv_timeout(left), Err(RecvTimeoutError::Timeout)) {
                    actuator.take_back()?;
                    controller.pause();
                    return Ok(controller);
                }
                for step in controller.poll(&mut actuator)? {
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
