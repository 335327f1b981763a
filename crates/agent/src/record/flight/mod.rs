// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flight recorder: a host is recorded all the time, the last minutes are kept in a ring, and what is around an event is kept
//! for good.

mod kernel_log;
mod recorder;
pub mod rows;
mod spin_share;
#[cfg(test)]
mod test_events;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use unspin_recording::{
    Ended,
    facts::Facts,
    ring::{Ring, RingOptions},
};

use super::{About, RecordError, Stream, Wanted};
use crate::{
    EventMask, Observer,
    until::{Over, Until},
};
use kernel_log::KernelMessages;
use recorder::{FlightRecorder, moment};

pub use recorder::{Desk, News, Status};
pub use spin_share::WINDOW_NS as SPIN_SHARE_WINDOW_NS;

/// How often the kernel's messages are read.
const MESSAGES_INTERVAL: Duration = Duration::from_millis(250);

/// For what a span is kept.
#[derive(Clone, Debug, Default)]
pub struct Triggers {
    /// A VM spun for this share of its CPU time; percent, 1 to 100.
    pub spin_share_percent: Option<u32>,
    /// Set by whoever wants a span, as a signal's handler.
    pub signal: Option<Arc<AtomicBool>>,
    /// The host's kernel reports a soft lockup: where its messages are, /dev/kmsg.
    pub soft_lockup: Option<PathBuf>,
}

/// A flight recorder under way.
pub struct Flight {
    /// What moves the events.
    pub stream: Stream,
    desk: Arc<Desk>,
    signal: Option<Arc<AtomicBool>>,
    messages: Option<KernelMessages>,
    messages_read: Instant,
}

/// Attaches the programs and begins a ring in `folder`; an earlier ring there is kept, or dropped if there is no room among the
/// kept spans.
///
/// # Errors
/// As [`super::start`], and when the kernel's messages cannot be read: then nothing was attached.
pub fn start(
    folder: &Path,
    events: EventMask,
    about: About,
    options: RingOptions,
    triggers: Triggers,
) -> Result<Flight, RecordError> {
    let (observe, facts) = super::prepare(events, about);
    Ring::may_begin(folder)?;
    let open = |path: PathBuf| {
        KernelMessages::open(&path).map_err(|source| RecordError::KernelMessages { path, source })
    };
    let messages = triggers.soft_lockup.clone().map(open).transpose()?;
    let observer = Observer::attach(&observe).map_err(RecordError::Observe)?;
    let mut flight = start_with(folder, observer, facts, options, triggers)?;
    flight.messages = messages;
    Ok(flight)
}

/// The same with an observer that is attached already: for measurements. The kernel's messages are not looked at.
///
/// # Errors
/// When nothing can be written to the folder, or no thread can be made.
pub fn start_with(
    folder: &Path,
    observer: Observer,
    facts: Facts,
    options: RingOptions,
    triggers: Triggers,
) -> Result<Flight, RecordError> {
    let desk = Arc::new(Desk::default());
    let keep_ns = options.keep_ns;
    let ring = Ring::begin(folder, facts, options, moment("earlier", "", ""))?;
    let recorder = FlightRecorder::new(
        ring,
        Arc::clone(&desk),
        keep_ns,
        triggers.spin_share_percent,
    );
    // VMs may come and go for days.
    let wanted = Wanted {
        keep_events_max: 0,
        forget_ended: true,
    };
    Ok(Flight {
        stream: Stream::into_sink(observer, Box::new(recorder), wanted)?,
        desk,
        signal: triggers.signal,
        messages: None,
        messages_read: Instant::now(),
    })
}

impl Flight {
    /// Where to ask for a span, and to learn what happened.
    pub fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// Waits until `until` is over or nothing more is written: how it ended. `tell` is called some twenty times a second.
    ///
    /// # Errors
    /// When the system does not say how the command does, or what the kernel's messages are.
    pub fn watch(&mut self, until: &mut Until, tell: &mut dyn FnMut(&Desk)) -> io::Result<Ended> {
        loop {
            match until.over()? {
                Some(Over::CommandEnded | Over::TimeIsUp) => return Ok(Ended::Finished),
                Some(Over::Interrupted) => return Ok(Ended::Interrupted),
                None => {}
            }
            if self.stream.progress().failed.load(Ordering::Relaxed) {
                return Ok(Ended::Failed);
            }
            self.look_for_triggers()?;
            tell(&self.desk);
            until.pause();
        }
    }

    fn look_for_triggers(&mut self) -> io::Result<()> {
        let signalled = |flag: &Arc<AtomicBool>| flag.swap(false, Ordering::Relaxed);
        if self.signal.as_ref().is_some_and(signalled) {
            self.desk.keep("signal", "", "SIGUSR1");
        }
        if let Some(messages) = &mut self.messages {
            if self.messages_read.elapsed() >= MESSAGES_INTERVAL {
                self.messages_read = Instant::now();
                for lockup in messages.soft_lockups()? {
                    self.desk.keep("soft-lockup", "", &lockup);
                }
            }
        }
        Ok(())
    }
}
