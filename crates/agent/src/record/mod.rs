// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording a host: what KVM and the scheduler do with every VM, into a folder.

pub mod flight;
pub mod rows;
mod sink;
mod stream;

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use unspin_recording::{
    Ended, Options, Recording,
    facts::{Facts, ScenarioFacts},
};

use crate::{
    EventMask, ObserveOptions, Observer, host_facts,
    until::{Over, Until},
};

pub use stream::{Progress, Stream, Streamed, Wanted};

/// How often whoever waits is told how far it is.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// Why a host is not recorded, or was not until the end.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The programs could not be attached.
    #[error("KVM cannot be observed on this host")]
    Observe(#[source] crate::Error),
    /// The kernel did not let their events be read.
    #[error(transparent)]
    Drain(crate::Error),
    /// The folder cannot be, or what was to be written could not be.
    #[error(transparent)]
    Recording(#[from] unspin_recording::Error),
    /// The kernel's messages, in which soft lockups are, cannot be read.
    #[error("{}: the kernel's messages cannot be read (it takes root or CAP_SYSLOG)", path.display())]
    KernelMessages {
        /// Where they are.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No thread could be made.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What only the caller knows of a recording.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The commit that this program was built from.
    pub commit: String,
    /// The machine, in one line.
    pub machine: String,
    /// The scenario that runs, if one does.
    pub scenario: Option<ScenarioFacts>,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progressed {
    /// Events per second since the last time.
    pub events_per_second: f64,
    /// Events lost so far.
    pub lost: u64,
    /// VMs seen so far.
    pub vms: u64,
    /// Bytes written so far.
    pub bytes: u64,
}

/// Attaches the programs and begins a recording of these kinds of events in `folder`. From then on a write beyond the limit on
/// sizes of files is an error of this process, no signal.
///
/// # Errors
/// When this host cannot be observed, or nothing can be written to the folder: then nothing was attached.
pub fn start(
    folder: &Path,
    events: EventMask,
    about: About,
    wanted: Wanted,
) -> Result<Stream, RecordError> {
    let (options, facts) = prepare(events, about);
    // Before anything is attached.
    Recording::may_begin(folder)?;
    let observer = Observer::attach(&options).map_err(RecordError::Observe)?;
    let recording = Recording::create(folder, facts, Options::default())?;
    Ok(Stream::start(observer, recording, wanted)?)
}

/// What to observe, and what is known of the host before that.
fn prepare(events: EventMask, about: About) -> (ObserveOptions, Facts) {
    // SAFETY: a signal number and a constant.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let options = ObserveOptions {
        events,
        ..ObserveOptions::default()
    };
    let facts = Facts {
        commit: about.commit,
        machine: about.machine,
        scenario: about.scenario,
        ..host_facts(&options)
    };
    (options, facts)
}

/// Waits until `until` is over or nothing more is written: how it ended. Once a second `tell` learns how far it is.
///
/// # Errors
/// When the system does not say how the command does.
pub fn watch(
    stream: &Stream,
    until: &mut Until,
    tell: &mut dyn FnMut(Progressed),
) -> io::Result<Ended> {
    let mut told = Instant::now();
    let mut events_then = 0;
    loop {
        match until.over()? {
            Some(Over::CommandEnded | Over::TimeIsUp) => return Ok(Ended::Finished),
            Some(Over::Interrupted) => return Ok(Ended::Interrupted),
            None => {}
        }
        let progress = stream.progress();
        if progress.failed.load(Ordering::Relaxed) {
            return Ok(Ended::Failed);
        }
        if told.elapsed() >= TELL_INTERVAL {
            let seconds = told.elapsed().as_secs_f64();
            told = Instant::now();
            let events = progress.events.load(Ordering::Relaxed);
            tell(Progressed {
                events_per_second: (events - events_then) as f64 / seconds,
                lost: progress.lost.load(Ordering::Relaxed),
                vms: progress.vms.load(Ordering::Relaxed),
                bytes: progress.bytes.load(Ordering::Relaxed),
            });
            events_then = events;
        }
        until.pause();
    }
}
