// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flight recorder costs beside threads that switch so often.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use unspin_agent::{
    EventMask, ObserveOptions, host_facts,
    record::flight::{Flight, Triggers, start_with},
    synthetic::{Synthetic, Vcpu},
};
use unspin_events::KIND_NAMES;
use unspin_recording::{Ended, ring::RingOptions};
use unspin_report::row;

use crate::{
    Error,
    observing::{PORTION_INTERVAL, Settings, VM, to_cpu},
};

/// Threads of the recorder, as `Stream` calls them.
const THREADS: [&str; 2] = ["unspin-drainer", "unspin-writer"];

row! {
    "flight_recorder", ["bench observing"];
    /// What a flight recorder (`unspin record --keep`) takes beside pairs of threads that switch, one pair on each CPU.
    pub struct FlightRow {
        /// CPUs.
        cpus: usize = ("CPUs", Count),
        /// How long; seconds.
        seconds: f64 = ("seconds", Ratio),
        /// Times that one of those threads got a CPU, per second and CPU.
        switches_per_second: f64 = ("switches/s and CPU", Ratio),
        /// Events per second, all CPUs.
        events_per_second: f64 = ("events/s", Ratio),
        /// CPU time of the threads that drain and write; percent of one CPU.
        recorder_percent: f64 = ("recorder %", Ratio),
        /// Time in the programs at every switch and wake-up of the host, with what counting it adds; percent of one CPU.
        programs_percent: f64 = ("programs %", Ratio),
        /// Both, per CPU; percent.
        percent_per_cpu: f64 = ("both, % of each CPU", Ratio),
        /// Bytes written per second.
        bytes_per_second: f64 = ("bytes/s", Ratio),
        /// Events that found no room.
        lost: u64 = ("lost", Count),
    }
}

/// Switches as often as asked for on each CPU while a flight recorder runs.
pub(super) fn measure(settings: &Settings<'_>) -> Result<FlightRow, Error> {
    let options = ObserveOptions {
        events: EventMask::SWITCHES,
        run_statistics: true,
        ..ObserveOptions::default()
    };
    let refused = "the programs cannot be attached to this kernel";
    let (observer, synthetic) = Synthetic::attach(&options).context(refused)?;
    let temporary = tempfile::tempdir().context("a folder for the recording")?;
    let folder = settings.folder.unwrap_or(temporary.path()).join("ring");
    let seconds = u64::from(settings.seconds);
    // Half of it is dropped again.
    let ring = RingOptions::new(seconds * 500_000_000, 2 << 30);
    let triggers = Triggers {
        spin_share_percent: Some(40),
        ..Triggers::default()
    };
    let facts = host_facts(&options);
    let flight = start_with(&folder, observer, facts, ring, triggers).context("no recorder")?;
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let cpu_ns_then = own_threads_ns()?;
    let took = switch_on_each(cpus, &synthetic, settings)?;
    let recorder_ns = own_threads_ns()? - cpu_ns_then;
    row(flight, cpus, took.as_secs_f64(), recorder_ns)
}

fn row(flight: Flight, cpus: usize, seconds: f64, recorder_ns: u64) -> Result<FlightRow, Error> {
    let desk = std::sync::Arc::clone(flight.desk());
    let streamed = flight.stream.finish(Ended::Finished);
    if let Some(error) = streamed.error {
        return Err(anyhow::Error::from(error).into());
    }
    let health = streamed.observer.health().map_err(anyhow::Error::from)?;
    let programs_ns: u64 = health
        .programs
        .iter()
        .map(|program| program.run_time_ns)
        .sum();
    let percent = |ns: u64| ns as f64 / 1e7 / seconds;
    let (recorder_percent, programs_percent) = (percent(recorder_ns), percent(programs_ns));
    let kinds = KIND_NAMES.iter().zip(streamed.kinds);
    let switches: u64 = kinds
        .filter(|(name, _)| **name == "switch_in")
        .map(|(_, events)| events)
        .sum();
    let events: u64 = streamed.kinds.iter().sum();
    Ok(FlightRow {
        cpus,
        seconds,
        switches_per_second: switches as f64 / seconds / cpus as f64,
        events_per_second: events as f64 / seconds,
        recorder_percent,
        programs_percent,
        percent_per_cpu: (recorder_percent + programs_percent) / cpus as f64,
        bytes_per_second: desk.status().counts.bytes_written as f64 / seconds,
        lost: health.lost_events,
    })
}

/// A pair of threads on each CPU that send a byte back and forth, each time asleep until it comes; how long that took.
fn switch_on_each(
    cpus: usize,
    synthetic: &Synthetic,
    settings: &Settings<'_>,
) -> Result<Duration, Error> {
    let pairs: Vec<(UnixStream, UnixStream)> = (0..cpus)
        .map(|_| UnixStream::pair())
        .collect::<Result<_, _>>()
        .context("two threads need a pair of sockets")?;
    let begin = Instant::now();
    let failed = AtomicBool::new(false);
    thread::scope(|scope| {
        for (cpu, (one, other)) in pairs.into_iter().enumerate() {
            let failed = &failed;
            let adopt = move |number| {
                to_cpu(cpu);
                let vcpu = Vcpu {
                    vm: VM,
                    number: 2 * cpu as u32 + number,
                };
                if synthetic.adopt(vcpu, 0).ok() != Some(true) {
                    failed.store(true, Ordering::Relaxed);
                }
            };
            scope.spawn(move || {
                adopt(0);
                lead(one, settings, begin);
            });
            scope.spawn(move || {
                adopt(1);
                follow(other);
            });
        }
    });
    match failed.into_inner() {
        true => Err(anyhow::anyhow!("a thread found no slot among those that are observed").into()),
        false => Ok(begin.elapsed()),
    }
}

/// Sends a byte and waits for it, as often as is due: two switches each time. Closing the socket ends the other one.
fn lead(mut socket: UnixStream, settings: &Settings<'_>, begin: Instant) {
    let end = Duration::from_secs(settings.seconds.into());
    let mut byte = [0];
    let mut switches = 0_u64;
    while begin.elapsed() < end {
        let due = (begin.elapsed().as_secs_f64() * f64::from(settings.switches)) as u64;
        while switches < due {
            if socket.write_all(&byte).is_err() || socket.read_exact(&mut byte).is_err() {
                return;
            }
            switches += 2;
        }
        thread::sleep(PORTION_INTERVAL);
    }
}

fn follow(mut socket: UnixStream) {
    let mut byte = [0];
    while socket.read_exact(&mut byte).is_ok() && socket.write_all(&byte).is_ok() {}
}

/// CPU time of the recorder's threads so far, ns.
fn own_threads_ns() -> Result<u64, Error> {
    let tasks = fs::read_dir("/proc/self/task").context("the threads of this process")?;
    let mut sum_ns = 0;
    for task in tasks.flatten() {
        let comm = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if THREADS.contains(&comm.trim_end()) {
            let text = fs::read_to_string(task.path().join("schedstat"))
                .context("CPU time of a thread (CONFIG_SCHED_INFO)")?;
            let run_ns: Option<u64> = text.split(' ').next().and_then(|text| text.parse().ok());
            sum_ns += run_ns.context("CPU time of a thread")?;
        }
    }
    Ok(sum_ns)
}
