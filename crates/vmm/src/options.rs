// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a run is watched, ended from outside, and made to fail.
use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use unspin_abi as abi;

use crate::pv_pages::PvPages;

/// What a caller may ask of a run beside its scenario.
pub struct RunOptions {
    /// Set it (from a signal handler, say) and the run ends with `Error::Interrupted` within some 50 ms.
    pub interrupt: Arc<AtomicBool>,
    /// Called on the thread that called `run()`, at each phase.
    pub on_phase: Option<Box<dyn Fn(Phase) + Send + Sync>>,
    /// For VMs whose scenario wants their pv pages in a map of the scheduler's; `None`: they keep them in their own memory.
    pub pv_pages: Option<Arc<PvPages>>,
    /// What every guest does wrong on purpose, for tests of what is then reported.
    pub fault: Fault,
    /// Until every vCPU must have executed its first instruction; 120 s. Emulated, hundreds of VMs take seconds.
    pub start_limit: Duration,
    /// From the request to stop until every vCPU must be done; 60 s. A convoy of descheduled tickets ends at some
    /// context switches per iteration, so this is not short.
    pub stop_limit: Duration,
}

impl RunOptions {
    /// Calls the callback, if there is one.
    pub(crate) fn told(&self, phase: Phase) {
        self.on_phase.iter().for_each(|tell| tell(phase));
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            interrupt: Arc::default(),
            on_phase: None,
            pv_pages: None,
            fault: Fault::None,
            start_limit: Duration::from_secs(120),
            stop_limit: Duration::from_secs(60),
        }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("interrupt", &self.interrupt)
            .field("fault", &self.fault)
            .field("start_limit", &self.start_limit)
            .field("stop_limit", &self.stop_limit)
            .finish_non_exhaustive()
    }
}

/// Where a run is. `WindowBegins` and `WindowEnds` come right after the statistics have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// All VMs are there and their threads wait.
    Created,
    /// Every vCPU has executed its first instruction; what a scenario's times count from.
    Started,
    /// The warm-up is over. Not with `Length::Iterations`: there the window is the run.
    WindowBegins,
    /// The guests are about to be told to stop. Not with `Length::Iterations`.
    WindowEnds,
    /// All guests are done and all threads joined.
    Stopped,
}

/// A guest's fault on purpose: `enum unspin_guest_fault` of abi/guest/memory.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// None.
    #[default]
    None,
    /// vCPU 0 takes a triple fault.
    Triple,
    /// vCPU 0 executes UD2.
    Exception,
    /// The lock lets everybody in.
    Exclusion,
    /// Kicks by a hypercall that KVM refuses; the guest goes on.
    RefusedKick,
    /// Pv pages that lose their magic, and registrations of nowhere; the guest goes on.
    PvPageGone,
    /// Pv pages of random words; the guest goes on.
    PvPageLies,
}

impl Fault {
    /// The number in the parameter block.
    pub(crate) fn number(self) -> u32 {
        match self {
            Fault::None => abi::UNSPIN_FAULT_NONE,
            Fault::Triple => abi::UNSPIN_FAULT_TRIPLE,
            Fault::Exception => abi::UNSPIN_FAULT_EXCEPTION,
            Fault::Exclusion => abi::UNSPIN_FAULT_EXCLUSION,
            Fault::RefusedKick => abi::UNSPIN_FAULT_REFUSED_KICK,
            Fault::PvPageGone => abi::UNSPIN_FAULT_PV_PAGE_GONE,
            Fault::PvPageLies => abi::UNSPIN_FAULT_PV_PAGE_LIES,
        }
    }
}
