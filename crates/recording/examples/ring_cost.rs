// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a ring costs: `ring_cost FOLDER [SWITCHES_PER_SECOND [SECONDS]]` feeds one with so many switches of vCPUs a second, in
//! batches of 20 ms as the agent does, in real time, and says which part of a CPU that took and how many bytes.
//!
//! A switch from one vCPU to another is two events. A fifth as many pause-loop exits come on top, with four events each.

mod common;

use std::{
    env,
    mem::MaybeUninit,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use unspin_events::{Event, GuestMode, What, facts::Facts};
use unspin_recording::{
    Ended, Error,
    ring::{Ring, RingOptions, Trigger},
};

const BATCH_NS: u64 = 20_000_000;
/// Of 14 events 10 are of switches.
const EVENTS: u64 = 14;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(folder) = arguments.first().map(PathBuf::from) else {
        eprintln!("ring_cost FOLDER [SWITCHES_PER_SECOND [SECONDS]]");
        return ExitCode::from(2);
    };
    let number = |place: usize, otherwise| {
        let text = arguments.get(place);
        text.map_or(Some(otherwise), |text| text.parse::<u64>().ok())
    };
    let (Some(switches), Some(seconds)) = (number(1, 10_000), number(2, 30)) else {
        eprintln!("ring_cost: SWITCHES_PER_SECOND and SECONDS are whole numbers");
        return ExitCode::from(2);
    };
    match run(&folder, switches, seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ring_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(folder: &Path, switches: u64, seconds: u64) -> Result<(), Error> {
    let options = RingOptions::new(seconds * 500_000_000, 2 << 30);
    let mut ring = Ring::begin(folder, Facts::default(), options, Trigger::default())?;
    let events_per_second = switches * EVENTS / 5;
    let (begin, cpu_begin) = (Instant::now(), cpu_seconds());
    let mut making = Duration::ZERO;
    let mut number = 0;
    for batch in 1..=seconds * 1_000_000_000 / BATCH_NS {
        let made = Instant::now();
        let until = events_per_second * batch / (1_000_000_000 / BATCH_NS);
        let spread = BATCH_NS / (until - number).max(1);
        let from_ns = (batch - 1) * BATCH_NS;
        let events: Vec<Event> = (number..until)
            .zip(0u64..)
            .map(|(number, place)| event(number, from_ns + place * spread))
            .collect();
        number = until;
        making += made.elapsed();
        ring.append(&events)?;
        ring.tick(batch * BATCH_NS)?;
        let due = Duration::from_nanos(batch * BATCH_NS);
        thread::sleep(due.saturating_sub(begin.elapsed()));
    }
    let took = begin.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu_begin - making.as_secs_f64();
    let done = ring.finish(Ended::Finished, None)?;
    let bytes = done.counts.bytes_written as f64;
    println!(
        "{switches} switches/s, {events_per_second} events/s for {took:.1} s: {:.2} % of a CPU ({:.0} ns an event), {:.0} bytes/s \
         ({:.1} an event); {} segments of {} events are there, {} were dropped",
        100.0 * cpu / took,
        1e9 * cpu / number as f64,
        bytes / took,
        bytes / done.counts.events_written as f64,
        done.extent.segments,
        done.extent.events,
        done.counts.dropped.segments()
    );
    Ok(())
}

/// Of this process, user and kernel mode.
fn cpu_seconds() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a live struct of that type, which the call writes; zeroes are a valid value of it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Of 8 VMs with 8 vCPUs each.
fn event(number: u64, time_ns: u64) -> Event {
    let mixed = (number / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let vcpu = (mixed >> 58) as u16;
    let other = 1_000 + (mixed >> 40 & 63) as u32;
    let what = match number % EVENTS {
        place @ 0..=9 if place % 2 == 0 => What::SwitchOut {
            next_thread: other,
            next_vm: Some((other - 1_000) / 8),
            runnable: mixed >> 20 & 3 != 0,
            preempt: mixed >> 20 & 3 == 1,
            mode: Some(GuestMode::Kernel),
            exit_code: Some(0x60 + (mixed >> 30 & 1) as u32 * 0x17),
            guest_rip: Some(0xffff_ffff_8100_0000 + (mixed >> 52)),
        },
        0..=9 => What::SwitchIn {
            previous_thread: other,
            previous_vm: Some((other - 1_000) / 8),
        },
        10 => common::pause_exit(mixed, (mixed >> 48) as u32),
        11 => What::KvmVcpuOnSpin,
        12 => common::yield_to(vcpu),
        _ => What::PauseEntry {
            outside_ns: mixed >> 48,
            handling_ns: mixed >> 52,
        },
    };
    common::of_vcpu(
        vcpu,
        time_ns + (mixed >> 56),
        (mixed >> 50) as u16 % 2,
        what,
    )
}
