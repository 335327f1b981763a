// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin threshold`: Friebel's histograms from a recording, and what each threshold would cost.

use unspin_analysis::{CpuTimer, SpinWaits, WindowTimes};
use unspin_recording::{GuestStatistics, Recorded};
use unspin_report::Document;

use crate::{
    commands::threshold::{args::ThresholdArguments, tables as threshold_tables, tables::Measured},
    terminal::{failure::Failure, output},
};

/// Reads the recording and prints the tables.
pub fn run(arguments: &ThresholdArguments) -> Result<(), Failure> {
    let recorded = Recorded::open_readable(&arguments.folder)?;
    let measured = measure(&recorded);
    if let Some(vm) = arguments.vm {
        let known = measured.times.vm_ns.contains_key(&vm) || measured.waits.contains_key(&vm);
        if !known {
            let numbers: Vec<String> = measured.times.vm_ns.keys().map(u32::to_string).collect();
            return Err(Failure::Usage(format!(
                "the recording has no VM {vm}; it has: {}",
                numbers.join(", ")
            )));
        }
    }
    let mut document = Document::new("threshold", &recorded.facts().machine);
    threshold_tables::add(&mut document, &recorded, &measured, arguments.vm);
    output::print(&document, arguments.output)?;
    Ok(())
}

/// Two passes over the events: first how long windows take, then the waits.
fn measure(recorded: &Recorded) -> Measured {
    let mut windows = WindowTimes::default();
    let mut timer = CpuTimer::default();
    let mut events = recorded.events();
    for event in events.by_ref() {
        windows.see(&event);
        timer.see(&event);
    }
    let mut problems = [recorded.problems(), &events.problems()].concat();
    let mut waits = SpinWaits::new(&windows);
    recorded.events().for_each(|event| waits.see(&event));
    let waits = waits.finish();
    let guests = GuestStatistics::read(recorded.folder()).unwrap_or_else(|error| {
        problems.push(format!("left out: {error}"));
        None
    });
    Measured {
        problems,
        times: timer.finish(),
        waits,
        windows,
        tick_ns: guests.as_ref().map(|guests| 1e9 / guests.tsc_hz as f64),
        guests: guests
            .into_iter()
            .flat_map(|guests| guests.vms)
            .filter_map(|guest| Some((guest.vm?, guest)))
            .collect(),
    }
}
