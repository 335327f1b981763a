// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our scheduler while it has the host.

use std::time::Instant;

use unspin_agent::{
    AutoController, AutoSteering, ChosenPolicies, SteerEnd, SteerError, SteerOptions, Steerer,
};

use crate::Error;

/// Decides on the orders of `auto`'s trials.
const AUTO_SEED: u64 = 1;

/// What tries it, and what `auto` has learned in the phases before.
pub(super) struct Trial {
    chosen: ChosenPolicies,
    options: SteerOptions,
    learned: Option<AutoController>,
}

/// Our scheduler, until it is dropped; then the kernel's own is back.
pub(super) struct Attached {
    // Dropped in this order: whoever waits for the kernel's scheduler to be back is real-time until it is.
    auto: Option<AutoSteering>,
    steerer: Steerer,
    _priority: RealTime,
    /// When it began.
    pub(super) since: Instant,
}

impl Trial {
    pub(super) fn new(chosen: ChosenPolicies, only_vms: bool) -> Trial {
        let options = SteerOptions {
            policies: chosen.policies,
            candidates: chosen.auto,
            user_policy: chosen.user_policy.clone(),
            only_vms,
            ..SteerOptions::default()
        };
        Trial {
            chosen,
            options,
            learned: None,
        }
    }

    /// Our scheduler has the host from now on. Err of [`SteerError::TakenBack`]: it had, and the kernel has taken its own back.
    pub(super) fn attach(&mut self) -> Result<Attached, SteerError> {
        // The kernel's verifier takes a second and more for each: nobody is under ours yet.
        let controller = match (self.chosen.auto, self.learned.take()) {
            (true, None) => Some(AutoController::new(Vec::new(), AUTO_SEED)?),
            (_, learned) => learned,
        };
        let loaded = Steerer::load(&self.options)?;
        let since = Instant::now();
        let steerer = loaded.attach()?;
        let auto = controller.map(|controller| AutoSteering::start(controller, &steerer));
        let auto = auto.transpose()?;
        Ok(Attached {
            auto,
            steerer,
            _priority: RealTime::begin(),
            since,
        })
    }

    /// The kernel's own is back.
    pub(super) fn detach(&mut self, mut attached: Attached) -> Result<(), Error> {
        let learned = attached.auto.take().map(AutoSteering::end);
        drop(attached);
        self.learned = learned.transpose()?;
        Ok(())
    }
}

impl Attached {
    /// Why the kernel has taken its own scheduler back, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<SteerEnd>, Error> {
        if let Some(auto) = self.auto.take_if(|auto| auto.has_ended()) {
            // Says why; what it has learned it says no more.
            auto.end()?;
        }
        Ok(self.steerer.ended()?)
    }

    /// Which policies VMs have of their own, by process.
    pub(super) fn policies(&self) -> Result<Vec<(u32, String)>, Error> {
        let rows = self.steerer.vm_policies()?.into_iter();
        Ok(rows
            .filter_map(|row| Some((row.process?, row.policy)))
            .collect())
    }
}

/// The calling thread is real-time meanwhile, the least there is: whoever gives the host back must not wait for the scheduler that
/// does the harm. What it starts is not.
struct RealTime;

impl RealTime {
    fn begin() -> RealTime {
        set_class(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1);
        RealTime
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        set_class(libc::SCHED_OTHER, 0);
    }
}

/// Of the calling thread. Where the kernel refuses (real-time group scheduling without a share) it stays what it is.
fn set_class(policy: libc::c_int, priority: libc::c_int) {
    let parameter = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: a parameter of our own that outlives the call; 0: the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
}
