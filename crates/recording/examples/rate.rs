// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a recording can be written and read: `rate FOLDER [SECONDS]` writes so many seconds of 200,000 synthetic
//! events each as fast as it can.

mod common;

use std::{env, path::PathBuf, process::ExitCode, time::Instant};

use unspin_events::{Event, GuestMode, What, facts::Facts};
use unspin_recording::{Ended, Options, Recorded, Recording};

const EVENTS_PER_SECOND: u64 = 200_000;
const BATCH: u64 = 4_000; // 20 ms

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        eprintln!("rate FOLDER [SECONDS]");
        return ExitCode::from(2);
    };
    let seconds = arguments
        .next()
        .and_then(|text| text.to_str()?.parse().ok());
    match run(&folder, seconds.unwrap_or(10)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(folder: &std::path::Path, seconds: u64) -> Result<(), unspin_recording::Error> {
    let mut recording = Recording::create(folder, Facts::default(), Options::default())?;
    let begin = Instant::now();
    for batch in 0..seconds * EVENTS_PER_SECOND / BATCH {
        let numbers = batch * BATCH..(batch + 1) * BATCH;
        let events: Vec<Event> = numbers.map(event).collect();
        recording.append(&events)?;
        recording.tick((batch + 1) * 20_000_000)?;
    }
    let summary = recording.finish(Ended::Finished, None)?;
    let took = begin.elapsed().as_secs_f64();
    let events = summary.manifest.events;
    println!(
        "{events} events written in {took:.2} s: {:.0} events/s, {:.1} bytes each",
        events as f64 / took,
        summary.bytes as f64 / events as f64
    );
    let begin = Instant::now();
    let read = Recorded::open(folder)?.events().count();
    let took = begin.elapsed().as_secs_f64();
    println!(
        "{read} events read in {took:.2} s: {:.0} events/s",
        read as f64 / took
    );
    Ok(())
}

/// Switches, pause-loop exits and their handling of 64 vCPUs.
fn event(number: u64) -> Event {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let vcpu = (mixed >> 58) as u16;
    let thread = common::thread_of(vcpu);
    let what = match number % 5 {
        0 => What::SwitchIn {
            previous_thread: thread + 1,
            previous_vm: Some(0),
        },
        1 => What::SwitchOut {
            next_thread: thread + 1,
            next_vm: Some(0),
            runnable: true,
            preempt: false,
            mode: Some(GuestMode::Kernel),
            exit_code: Some(0x77),
            guest_rip: Some(0xffff_ffff_8100_0000 + (mixed >> 52)),
        },
        2 => common::pause_exit(mixed, (mixed >> 40) as u32),
        3 => common::yield_to(vcpu),
        _ => What::PauseEntry {
            outside_ns: mixed >> 44,
            handling_ns: mixed >> 48,
        },
    };
    let time_ns = number * (1_000_000_000 / EVENTS_PER_SECOND) + (mixed >> 54);
    common::of_vcpu(vcpu, time_ns, (mixed >> 50) as u16 % 16, what)
}
