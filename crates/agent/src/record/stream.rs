// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the kernel's ring into a recording, by two threads: one drains, one writes.
//!
//! The kernel never waits: when the disk is slow the drainer leaves events in the ring, the ring runs full, and the
//! programs count what they could not write. Memory: at most `QUEUED_MAX` events (64 bytes each) between the two
//! threads, a ring's worth while draining, and what a [`Sink`] takes.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use unspin_events::{Event, KIND_NAMES};
use unspin_recording::{Ended, Recording, Summary};

use super::{RecordError, sink::Sink};
use crate::{Health, Names, Observer, monotonic_ns};

/// How often the ring is emptied.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// How often what goes by time is looked at when there are no events.
const TICK_INTERVAL: Duration = Duration::from_millis(100);
/// How often names are looked up again.
const NAMES_INTERVAL_NS: u64 = 1_000_000_000;
/// Events that may wait for the writer: 32 MB.
const QUEUED_MAX: usize = 500_000;
/// So many new vCPU threads, and the slots of ended ones are given back.
const FORGET_AFTER_THREADS: u64 = 1024;

/// What a caller wants beside the recording.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Keep so many events in memory as well.
    pub keep_events_max: usize,
    /// Give back the counters of ended threads, so that VMs may come and go for days.
    pub forget_ended: bool,
}

/// How far a recording is; written by its threads.
#[derive(Debug, Default)]
pub struct Progress {
    /// Events taken from the ring.
    pub events: AtomicU64,
    /// Events lost.
    pub lost: AtomicU64,
    /// VMs seen.
    pub vms: AtomicU64,
    /// Bytes of segments.
    pub bytes: AtomicU64,
    /// Nothing more is written: [`Stream::finish`] says why.
    pub failed: AtomicBool,
    vcpu_threads: AtomicU64,
    queued: AtomicUsize,
    stop: AtomicBool,
}

/// A recording under way.
pub struct Stream {
    progress: Arc<Progress>,
    drainer: JoinHandle<(Observer, Result<(), crate::Error>)>,
    writer: JoinHandle<Written>,
}

/// A recording that has ended.
pub struct Streamed {
    /// Still counts.
    pub observer: Observer,
    /// What stands on the disk; or why nothing more could be written, and that is not even in `recording.json`.
    pub summary: Result<Summary, unspin_recording::Error>,
    /// Why it ended early: an error of the disk or of the kernel.
    pub error: Option<RecordError>,
    /// Events by number of kind, as taken from the ring.
    pub kinds: [u64; KIND_NAMES.len()],
    /// The first so many of them.
    pub kept: Vec<Event>,
    /// Events that were to be kept, beyond those.
    pub not_kept: u64,
}

impl Stream {
    /// Begins to move events from `observer` to `recording`.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(observer: Observer, recording: Recording, wanted: Wanted) -> io::Result<Stream> {
        Stream::into_sink(observer, Box::new(recording), wanted)
    }

    /// The same to any sink.
    pub(super) fn into_sink(
        observer: Observer,
        sink: Box<dyn Sink>,
        wanted: Wanted,
    ) -> io::Result<Stream> {
        let progress = Arc::new(Progress::default());
        let (sender, batches) = mpsc::channel();
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let writer = Writer {
            progress: Arc::clone(&progress),
            written: Written {
                sink,
                error: None,
                kinds: [0; KIND_NAMES.len()],
                kept: Vec::new(),
                not_kept: 0,
            },
            wanted,
            names: Names::default(),
            names_at_ns: 0,
        };
        let writer = named("unspin-writer").spawn(move || writer.run(&batches))?;
        let drainer = Drainer {
            progress: Arc::clone(&progress),
            observer,
            lost: [0; KIND_NAMES.len()],
            forget_ended: wanted.forget_ended,
            threads_then: 0,
        };
        let drainer = named("unspin-drainer").spawn(move || drainer.run(&sender))?;
        Ok(Stream {
            progress,
            drainer,
            writer,
        })
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Drains once more, writes everything, and says how it ended.
    ///
    /// # Panics
    /// When one of the threads did.
    pub fn finish(self, ended: Ended) -> Streamed {
        self.progress.stop.store(true, Ordering::Relaxed);
        let (observer, drained) = join(self.drainer);
        let Written {
            mut sink,
            error,
            kinds,
            kept,
            not_kept,
        } = join(self.writer);
        let health = observer.health();
        let facts = sink.facts_mut();
        facts.end_monotonic_ns = Some(monotonic_ns());
        facts.missed_runs = health.as_ref().ok().map(Health::recursion_misses);
        facts.unobserved_exits = health.as_ref().ok().map(|health| health.unobserved_exits);
        let full = error.as_ref().is_some_and(|error| error.is_disk_full());
        let error = error
            .map(RecordError::from)
            .or(drained.err().map(RecordError::Drain));
        let ended = match (&error, full) {
            (None, _) => ended,
            (Some(_), true) => Ended::DiskFull,
            (Some(_), false) => Ended::Failed,
        };
        let because = error.as_ref().map(|error| error.to_string());
        Streamed {
            observer,
            summary: sink.finish(ended, because),
            error,
            kinds,
            kept,
            not_kept,
        }
    }
}

fn join<T>(thread: JoinHandle<T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// What came out of the ring at once.
struct Batch {
    events: Vec<Event>,
    /// Nothing that happened before is missing.
    drained_ns: u64,
}

struct Drainer {
    progress: Arc<Progress>,
    observer: Observer,
    /// Lost so far, by kind.
    lost: [u64; KIND_NAMES.len()],
    forget_ended: bool,
    threads_then: u64,
}

impl Drainer {
    fn run(mut self, batches: &Sender<Batch>) -> (Observer, Result<(), crate::Error>) {
        loop {
            let last = self.progress.stop.load(Ordering::Relaxed);
            let room = self.progress.queued.load(Ordering::Relaxed) < QUEUED_MAX;
            if room || last {
                // Whatever happened before this moment is in the ring now.
                let drained_ns = monotonic_ns();
                let events = match self.drain() {
                    Ok(events) => events,
                    Err(error) => {
                        self.progress.failed.store(true, Ordering::Relaxed);
                        return (self.observer, Err(error));
                    }
                };
                self.progress
                    .queued
                    .fetch_add(events.len(), Ordering::Relaxed);
                let is_empty = events.is_empty();
                let batch = Batch { events, drained_ns };
                if !is_empty && batches.send(batch).is_err() {
                    return (self.observer, Ok(())); // the writer has failed, and says so itself
                }
            }
            if last {
                return (self.observer, Ok(()));
            }
            thread::sleep(DRAIN_INTERVAL);
        }
    }

    /// Everything in the ring, and what was lost before this moment.
    fn drain(&mut self) -> Result<Vec<Event>, crate::Error> {
        let mut events = Vec::new();
        let undecodable = self.observer.drain(&mut |event| events.push(event))?;
        let mut lost = self.observer.lost()?;
        let now_ns = monotonic_ns(); // after the count: whatever it counts was lost before this moment
        lost[0] += undecodable;
        for (kind, (now, before)) in (0u32..).zip(lost.iter().zip(&mut self.lost)) {
            let new = now.saturating_sub(if kind == 0 { 0 } else { *before });
            *before = *now;
            if new > 0 {
                self.progress.lost.fetch_add(new, Ordering::Relaxed);
                events.push(Event::lost(now_ns, new, kind));
            }
        }
        let threads = self.progress.vcpu_threads.load(Ordering::Relaxed);
        // A flight recorder forgets who is gone.
        self.threads_then = self.threads_then.min(threads);
        if self.forget_ended && threads >= self.threads_then + FORGET_AFTER_THREADS {
            self.threads_then = threads;
            self.observer.forget_ended()?;
        }
        Ok(events)
    }
}

struct Written {
    sink: Box<dyn Sink>,
    error: Option<unspin_recording::Error>,
    kinds: [u64; KIND_NAMES.len()],
    kept: Vec<Event>,
    not_kept: u64,
}

struct Writer {
    progress: Arc<Progress>,
    written: Written,
    wanted: Wanted,
    names: Names,
    names_at_ns: u64,
}

impl Writer {
    fn run(mut self, batches: &Receiver<Batch>) -> Written {
        loop {
            let batch = match batches.recv_timeout(TICK_INTERVAL) {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) => Batch {
                    events: Vec::new(),
                    drained_ns: monotonic_ns(),
                },
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(error) = self.take(&batch) {
                self.written.error = Some(error);
                self.progress.failed.store(true, Ordering::Relaxed);
                break;
            }
        }
        self.put_names();
        self.written
    }

    /// Time goes by what was drained, not by when it is written: behind a queue, what is kept is kept for as long all the same.
    fn take(&mut self, batch: &Batch) -> Result<(), unspin_recording::Error> {
        let now_ns = batch.drained_ns;
        let batch = batch.events.as_slice();
        for event in batch {
            self.names.see(event);
            self.written.kinds[event.encode().kind as usize] += 1;
        }
        self.names.look();
        let room = self.wanted.keep_events_max - self.written.kept.len();
        let (kept, rest) = batch.split_at(room.min(batch.len()));
        self.written.kept.extend_from_slice(kept);
        if self.wanted.keep_events_max > 0 {
            self.written.not_kept += rest.len() as u64;
        }
        if now_ns >= self.names_at_ns + NAMES_INTERVAL_NS {
            self.names_at_ns = now_ns;
            self.names.refresh(now_ns);
            self.put_names();
        }
        let sink = &mut self.written.sink;
        sink.append(batch)?;
        sink.tick(now_ns)?;
        let progress = &self.progress;
        let events = batch.len();
        progress.queued.fetch_sub(events, Ordering::Relaxed);
        progress.events.fetch_add(events as u64, Ordering::Relaxed);
        progress
            .bytes
            .store(sink.bytes_written(), Ordering::Relaxed);
        Ok(())
    }

    /// The names so far, into the facts.
    fn put_names(&mut self) {
        self.written.sink.put_names(&mut self.names, monotonic_ns());
        let progress = &self.progress;
        progress
            .vms
            .store(self.names.vms().len() as u64, Ordering::Relaxed);
        progress
            .vcpu_threads
            .store(self.names.vcpu_threads() as u64, Ordering::Relaxed);
    }
}
