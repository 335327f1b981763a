// SPDX-License-Identifier: MIT OR Apache-2.0
//! What observing costs on this kernel (`unspin bench observing`), with threads that only say that they serve a vCPU. It needs
//! root and BTF, and no KVM: programs inside KVM cannot be timed this way, those of the scheduler and the ring can.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use unspin_agent::{
    EmptyPrograms, EventMask, ObserveOptions, Observer, host_facts,
    record::{Stream, Wanted},
    synthetic::{EVENTS_MAX, Synthetic, Vcpu},
};
use unspin_events::What;
use unspin_recording::{Ended, Options, Recorded, Recording};
use unspin_report::{COMMIT, Summary, row};

use crate::{Error, Session, Work};

mod flight;

pub use flight::FlightRow;

row! {
    "programs", ["bench observing"];
    /// What one of the scheduler's programs takes beyond an empty one.
    pub struct ProgramRow {
        /// The program.
        program: String = ("program", Text),
        /// The events that it writes: `none` or `switches`.
        events: &'static str = ("events", Text),
        /// Blocks of 250 ms.
        blocks: usize = ("blocks", Count),
        /// Runs of the program.
        runs: u64 = ("runs", Count),
        /// Time of a run, mean of the blocks; ns.
        own_ns: f64 = ("ns a run (mean)", Ratio),
        /// Lower bound of its 95 % interval; ns.
        own_ns_low: f64 = ("95 % from", Ratio),
        /// Upper bound; ns.
        own_ns_high: f64 = ("to", Ratio),
    }
}

row! {
    "ring", ["bench observing"];
    /// Synthetic events on one way out of the kernel.
    pub struct RingRow {
        /// The way.
        path: &'static str = ("path", Text),
        /// How long they were written; seconds.
        seconds: f64 = ("seconds", Ratio),
        /// Events per second that were asked for.
        asked_per_second: u32 = ("asked for, events/s", Count),
        /// Events per second that were written.
        written_per_second: f64 = ("written, events/s", Count),
        /// Events that came out.
        received: u64 = ("received", Count),
        /// Events that found no room.
        lost: u64 = ("lost", Count),
    }
}

/// What is measured.
pub struct Settings<'a> {
    /// Rounds of four blocks for each of two kinds of observer.
    pub rounds: u32,
    /// Synthetic events per second.
    pub rate: u32,
    /// Switches per second and CPU beside the flight recorder.
    pub switches: u32,
    /// How long, seconds.
    pub seconds: u32,
    /// Folder for the recording, which has no `recording` yet; `None`: a temporary one.
    pub folder: Option<&'a Path>,
    /// What this machine is called, for the recording.
    pub machine: &'a str,
}

/// What was measured.
pub struct Measured {
    /// Each program.
    pub programs: Vec<ProgramRow>,
    /// The ways out of the kernel.
    pub ring: [RingRow; 2],
    /// The flight recorder.
    pub flight: FlightRow,
}

/// One measurement; long enough for some 10,000 switches, short enough that a busy machine weighs on few.
const BLOCK: Duration = Duration::from_millis(250);
/// Events come in portions, one each millisecond.
const PORTION_INTERVAL: Duration = Duration::from_millis(1);
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
const VM: u64 = 0x1000;

/// Times the scheduler's programs, then fills the ring at the rate asked for and reads it as `unspin record` does, then switches as
/// often as asked for beside a flight recorder.
///
/// # Errors
/// When this kernel does not take the programs, or the recording cannot be written.
pub fn measure(settings: &Settings<'_>, session: &Session<'_>) -> Result<Measured, Error> {
    let steps = settings.rounds as usize * 8 + 3;
    session.progress.begin("measuring", Work::Steps(steps));
    let measured = measure_all(settings, session);
    session.progress.end();
    measured
}

fn measure_all(settings: &Settings<'_>, session: &Session<'_>) -> Result<Measured, Error> {
    let (mut programs, mut done) = (Vec::new(), 0);
    let mut step = || {
        done += 1;
        session.progress.done(done);
    };
    for (events, mask) in [("none", EventMask::NONE), ("switches", EventMask::SWITCHES)] {
        programs.extend(time_programs(settings.rounds, events, mask, &mut step)?);
    }
    let ring = through_ring(settings)?;
    step();
    let recording = through_recording(settings)?;
    step();
    let flight = flight::measure(settings)?;
    step();
    Ok(Measured {
        programs,
        ring: [ring, recording],
        flight,
    })
}

fn options(events: EventMask) -> ObserveOptions {
    ObserveOptions {
        events,
        run_statistics: true,
        ..ObserveOptions::default()
    }
}

/// Rounds of four blocks, ABBA: ours attached before the empty ones, after, after, before.
fn time_programs(
    rounds: u32,
    events: &'static str,
    mask: EventMask,
    step: &mut dyn FnMut(),
) -> Result<Vec<ProgramRow>, Error> {
    let mut samples: Vec<(String, u64, Vec<f64>)> = Vec::new();
    for _ in 0..rounds {
        for ours_first in [true, false, false, true] {
            for (program, runs, own_ns) in block(&options(mask), ours_first)? {
                match samples.iter_mut().find(|(name, _, _)| *name == program) {
                    Some((_, all_runs, figures)) => {
                        *all_runs += runs;
                        figures.push(own_ns);
                    }
                    None => samples.push((program, runs, vec![own_ns])),
                }
            }
            step();
        }
    }
    let mut rows = Vec::new();
    for (program, runs, figures) in samples {
        // Ends of threads are few: a block has none, or two.
        let Some(summary) = Summary::of(&figures).filter(|_| runs > 1000) else {
            continue;
        };
        rows.push(ProgramRow {
            program,
            events,
            blocks: figures.len(),
            runs,
            own_ns: summary.mean,
            own_ns_low: summary.interval.low,
            own_ns_high: summary.interval.high,
        });
    }
    Ok(rows)
}

/// Two threads wake each other on one CPU for a while; program, runs and nanoseconds of each.
fn block(options: &ObserveOptions, ours_first: bool) -> Result<Vec<(String, u64, f64)>, Error> {
    let attach_empty = || EmptyPrograms::attach_to_scheduler(options);
    let refused = "the programs cannot be attached to this kernel";
    let (mut observer, synthetic, empty);
    if ours_first {
        (observer, synthetic) = Synthetic::attach(options).context(refused)?;
        empty = attach_empty().context(refused)?;
    } else {
        empty = attach_empty().context(refused)?;
        (observer, synthetic) = Synthetic::attach(options).context(refused)?;
    }
    let (one, other) = UnixStream::pair().context("two threads need a pair of sockets")?;
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| ping_pong(&synthetic, 0, one, true, begin));
        scope.spawn(|| ping_pong(&synthetic, 1, other, false, begin));
    });
    observer.drain(&mut |_| {}).context("reading the ring")?;
    let health = observer.health().map_err(anyhow::Error::from)?;
    let costs = empty.costs(&health).map_err(anyhow::Error::from)?;
    Ok(costs
        .into_iter()
        .map(|cost| (cost.name, cost.runs, cost.own_ns))
        .collect())
}

/// Serves a vCPU that sends a byte back and forth, each time asleep until it comes. The one who begins ends it.
fn ping_pong(
    synthetic: &Synthetic,
    number: u32,
    mut socket: UnixStream,
    begins: bool,
    begin: Instant,
) {
    to_cpu(0);
    let vcpu = Vcpu { vm: VM, number };
    assert_eq!(synthetic.adopt(vcpu, 0).ok(), Some(true), "there are slots");
    let mut byte = [0];
    if begins && socket.write_all(&byte).is_err() {
        return;
    }
    while socket.read_exact(&mut byte).is_ok() {
        if begins && begin.elapsed() >= BLOCK || socket.write_all(&byte).is_err() {
            return; // closing the socket ends the other one
        }
    }
}

/// The calling thread runs on one CPU only, so that every byte is a switch.
fn to_cpu(cpu: usize) {
    // SAFETY: a zeroed cpu_set_t is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set outlives both calls, and CPUs that there are lie within it. On a machine that does not let us, the threads stay
    // where they are, and only the number of switches changes.
    unsafe {
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Writes synthetic events at that rate for so long; how many, in fact, and how long it took.
fn write_events(synthetic: &Synthetic, settings: &Settings<'_>) -> (u64, f64) {
    let vcpu = Vcpu { vm: VM, number: 0 };
    assert_eq!(synthetic.adopt(vcpu, 0).ok(), Some(true), "there are slots");
    let (begin, mut written) = (Instant::now(), 0_u64);
    let end = Duration::from_secs(settings.seconds.into());
    loop {
        // What is due by now: late portions are made up for.
        let elapsed = begin.elapsed().min(end);
        let due = (elapsed.as_secs_f64() * f64::from(settings.rate)) as u64;
        while written < due {
            let portion = (due - written).min(EVENTS_MAX.into()) as u32;
            assert_eq!(synthetic.emit(written, portion).ok(), Some(true));
            written += u64::from(portion);
        }
        if elapsed == end {
            return (written, begin.elapsed().as_secs_f64());
        }
        thread::sleep(PORTION_INTERVAL);
    }
}

fn attach_ring() -> Result<(Observer, Synthetic), Error> {
    let options = ObserveOptions {
        events: EventMask::EXITS,
        ..ObserveOptions::default()
    };
    let attached = Synthetic::attach(&options);
    Ok(attached.context("the programs cannot be attached to this kernel")?)
}

fn ring_row(
    path: &'static str,
    settings: &Settings<'_>,
    written: (u64, f64),
    received: u64,
    lost: u64,
) -> RingRow {
    let (events, seconds) = written;
    RingRow {
        path,
        seconds,
        asked_per_second: settings.rate,
        written_per_second: events as f64 / seconds,
        received,
        lost,
    }
}

/// Drained and decoded, and nothing else: what an in-memory recorder does.
fn through_ring(settings: &Settings<'_>) -> Result<RingRow, Error> {
    let (mut observer, synthetic) = attach_ring()?;
    let mut received = 0;
    let written = thread::scope(|scope| -> Result<(u64, f64), Error> {
        let writer = scope.spawn(|| write_events(&synthetic, settings));
        while !writer.is_finished() {
            thread::sleep(DRAIN_INTERVAL);
            observer
                .drain(&mut |_| received += 1)
                .context("reading the ring")?;
        }
        Ok(writer.join().expect("the writer does not panic"))
    })?;
    observer
        .drain(&mut |_| received += 1)
        .context("reading the ring")?;
    let lost = observer.health().map_err(anyhow::Error::from)?.lost_events;
    Ok(ring_row("ring", settings, written, received, lost))
}

/// As `unspin record` does: two threads, and Parquet on the disk.
fn through_recording(settings: &Settings<'_>) -> Result<RingRow, Error> {
    let (observer, synthetic) = attach_ring()?;
    let temporary = tempfile::tempdir().context("a folder for the recording")?;
    let folder = settings
        .folder
        .unwrap_or(temporary.path())
        .join("recording");
    let mut facts = host_facts(&ObserveOptions::default());
    facts.commit = COMMIT.to_owned();
    facts.machine = settings.machine.to_owned();
    let recording =
        Recording::create(&folder, facts, Options::default()).map_err(anyhow::Error::from)?;
    let wanted = Wanted {
        keep_events_max: 0,
        forget_ended: true,
    };
    let stream = Stream::start(observer, recording, wanted).context("no threads")?;
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| write_events(&synthetic, settings));
        writer.join().expect("the writer does not panic")
    });
    let streamed = stream.finish(Ended::Finished);
    if let Some(error) = streamed.error {
        return Err(anyhow::Error::from(error).into());
    }
    let lost = streamed
        .observer
        .health()
        .map_err(anyhow::Error::from)?
        .lost_events;
    let on_disk = Recorded::open(&folder).map_err(anyhow::Error::from)?;
    // A recording says in events of their own how many were lost.
    let received = on_disk
        .events()
        .filter(|event| matches!(event.what, What::KvmEntry { .. }))
        .count() as u64;
    Ok(ring_row(
        "recording, read back",
        settings,
        written,
        received,
        lost,
    ))
}
