// SPDX-License-Identifier: MIT OR Apache-2.0
//! Less spinning under the host's own scheduler: the threads of VMs' vCPUs get slices of their own, a fixed one or, by trial, the one
//! under which each VM does most (`policy/auto/levers.h`).

mod guard;
mod levers;

use std::{
    io,
    process::{Command, ExitStatus},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use unspin_policy::{
    auto::{AutoSet, AutoStep},
    steering::format_time,
};

pub use crate::scheduler::HostSlice;
use crate::{
    AutoController, AutoSteering, SteerError, Until, UsefulTimeMeter,
    kernel::{requirements, thread_slice},
    scheduler::check_no_other_scheduler,
};
use guard::Guard;
use levers::Levers;

/// How soon a vCPU that comes gets a fixed slice.
const RENEWED_EVERY: Duration = Duration::from_millis(250);

/// What one of the controller's sets comes to here, in words.
pub fn slice_in_words(set: AutoSet) -> String {
    match set.slice_ns() {
        None => "the kernel's slices".to_owned(),
        Some(ns) => format!("slices of {}", format_time(ns)),
    }
}

/// Why slices were not given, or not until the end.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// Threads have no slices of their own.
    #[error(
        "this kernel ({kernel}) gives threads no slices of their own: that needs Linux 6.12 or later"
    )]
    NoSlices {
        /// Its release.
        kernel: String,
    },
    /// What measures, a thread's slice, or a sched_ext scheduler that is attached, which has slices of its own.
    #[error(transparent)]
    Steer(#[from] SteerError),
    /// A process that would give slices back, or a command that was to run meanwhile.
    #[error("{what}")]
    Process {
        /// What was to be done.
        what: String,
        /// Why it was not.
        source: io::Error,
    },
}

/// Slices of VMs' own under the host's scheduler, until this is dropped or its process ends in any way: then all are as they were.
pub struct Tuning(Work);

enum Work {
    Auto(AutoSteering),
    Fixed {
        stop: Option<Sender<()>>,
        thread: Option<JoinHandle<Result<(), SteerError>>>,
    },
}

impl Tuning {
    /// Begins. `processes`: for these VMs alone, all if empty. `learned`: what [`Tuning::end`] of an earlier one for the
    /// same VMs gave.
    ///
    /// # Errors
    /// When the kernel gives threads no slices, rights are missing, or KVM is not loaded.
    pub fn start(
        slice: HostSlice,
        processes: Vec<u32>,
        learned: Option<AutoController>,
    ) -> Result<Tuning, TuneError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            |source| TuneError::Process { what, source }
        };
        check_no_other_scheduler()?;
        let kernels_ns = thread_slice::kernels_slice()
            .map_err(failed("giving a thread a slice"))?
            .ok_or_else(|| TuneError::NoSlices {
                kernel: requirements::release(),
            })?;
        let guard =
            Guard::start().map_err(failed("starting the process that gives slices back"))?;
        let work = match slice {
            HostSlice::Auto => {
                let controller = match learned {
                    Some(controller) => controller,
                    None => AutoController::sampling(processes, std::process::id().into())
                        .map_err(SteerError::from)?,
                };
                let threads = controller.threads().map_err(SteerError::from)?;
                let levers = Levers::new(threads, guard, kernels_ns, 0);
                Work::Auto(AutoSteering::start_with(controller, levers)?)
            }
            HostSlice::Fixed(ns) => {
                let meter = UsefulTimeMeter::attach().map_err(SteerError::from)?;
                let threads = meter.threads().map_err(SteerError::from)?;
                let levers = Levers::new(threads, guard, kernels_ns, ns);
                fixed(meter, levers, processes).map_err(failed("starting a thread"))?
            }
        };
        Ok(Tuning(work))
    }

    /// The epochs that have ended since the last call; none where slices are fixed.
    pub fn steps(&self) -> Vec<AutoStep> {
        match &self.0 {
            Work::Auto(auto) => auto.steps().collect(),
            Work::Fixed { .. } => Vec::new(),
        }
    }

    /// Whether slices are chosen by trial.
    pub fn learns(&self) -> bool {
        matches!(self.0, Work::Auto(_))
    }

    /// Whether it has ended by itself: then [`Tuning::end`] says why.
    pub fn has_ended(&self) -> bool {
        match &self.0 {
            Work::Auto(auto) => auto.has_ended(),
            Work::Fixed { thread, .. } => thread.as_ref().is_none_or(JoinHandle::is_finished),
        }
    }

    /// All slices are as they were; what was learned, if anything was to be.
    ///
    /// # Errors
    /// When the kernel has refused something meanwhile.
    pub fn end(mut self) -> Result<Option<AutoController>, SteerError> {
        match &mut self.0 {
            Work::Fixed { stop, thread } => {
                *stop = None;
                let thread = thread.take().expect("it is taken here and when dropped");
                thread.join().expect("it does not panic")?;
                Ok(None)
            }
            Work::Auto(_) => {
                let Work::Auto(auto) = std::mem::replace(&mut self.0, NOTHING) else {
                    unreachable!("it was just now")
                };
                auto.end().map(Some)
            }
        }
    }
}

/// Nothing is at work.
const NOTHING: Work = Work::Fixed {
    stop: None,
    thread: None,
};

impl Drop for Tuning {
    fn drop(&mut self) {
        if let Work::Fixed { stop, thread } = &mut self.0 {
            *stop = None;
            if let Some(thread) = thread.take() {
                // Nobody is there to be told of an error.
                let _ = thread.join();
            }
        }
    }
}

fn fixed(meter: UsefulTimeMeter, mut levers: Levers, processes: Vec<u32>) -> io::Result<Work> {
    let (stop, stopped) = mpsc::channel();
    let work = move || {
        // It lists the threads.
        let _meter = meter;
        loop {
            levers.renew(&processes)?;
            let waited = stopped.recv_timeout(RENEWED_EVERY);
            if !matches!(waited, Err(RecvTimeoutError::Timeout)) {
                return Ok(());
            }
        }
    };
    let thread = thread::Builder::new().name("unspin-tune".to_owned());
    Ok(Work::Fixed {
        stop: Some(stop),
        thread: Some(thread.spawn(work)?),
    })
}

/// What to do.
pub struct TuneRequest {
    /// Which slices.
    pub slice: HostSlice,
    /// For these VMs alone; empty: all.
    pub processes: Vec<u32>,
    /// What runs meanwhile, if anything.
    pub command: Option<Command>,
}

/// What whoever waits is told at once.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneNotice {
    /// It has begun.
    Begun,
    /// An epoch of a VM has ended.
    Chosen(AutoStep),
}

/// What was done.
pub struct Tuned {
    /// By VM process: its name, and the slice that it had in the end, ns; `None`: the kernel's own. Empty where slices are fixed.
    pub vms: Vec<(u32, String, Option<u32>)>,
    /// The command's status, if there was one.
    pub status: Option<ExitStatus>,
}

/// Gives slices until `until` is over, takes them back, and waits for the command, which outlives them.
///
/// # Errors
/// As [`Tuning::start`], and when something fails meanwhile; all slices are as they were then.
pub fn tune(
    request: TuneRequest,
    mut until: Until,
    notice: &mut dyn FnMut(TuneNotice),
) -> Result<Tuned, TuneError> {
    let failed = |what: String| |source| TuneError::Process { what, source };
    let tuning = Tuning::start(request.slice, request.processes, None)?;
    notice(TuneNotice::Begun);
    let program = request.command.as_ref().map(Command::get_program);
    let program = program.map(|program| program.to_string_lossy().into_owned());
    let started = until.start(request.command);
    started.map_err(failed(format!("starting {}", program.unwrap_or_default())))?;
    let over = || failed("looking at the command".to_owned());
    while until.poll().map_err(over())?.is_none() && !tuning.has_ended() {
        let steps = tuning.steps().into_iter().map(TuneNotice::Chosen);
        steps.for_each(&mut *notice);
    }
    let controller = match tuning.end() {
        Ok(controller) => controller,
        Err(error) => {
            // The command is not left behind; what it says is not what went wrong.
            let _ = until.finish_or_terminate();
            return Err(error.into());
        }
    };
    let acting = controller.map_or(Vec::new(), |controller| controller.acting());
    let vm = |(process, set): (u32, AutoSet)| {
        (
            process,
            unspin_vms::name_of(process).unwrap_or_default(),
            set.slice_ns(),
        )
    };
    Ok(Tuned {
        vms: acting.into_iter().map(vm).collect(),
        status: until.finish().map_err(over())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_a_slice() {
        let all: Vec<String> = AutoSet::all().map(slice_in_words).collect();
        assert_eq!(
            all,
            [
                "the kernel's slices",
                "slices of 100us",
                "slices of 300us",
                "slices of 10ms"
            ]
        );
    }
}
