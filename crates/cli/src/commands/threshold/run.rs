// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin threshold`: Friebel's histograms from a recording, and what each threshold would cost.

use std::collections::BTreeMap;

use unspin_analysis::{CpuTimer, CpuTimes, SpinWaits, VmWaits, WaitHistogram, WindowTimes};
use unspin_recording::{GuestStatistics, GuestVm, Recorded};
use unspin_report::Document;

use crate::{
    commands::{
        record::open as recordings,
        threshold::{args::ThresholdArguments, tables as threshold_tables},
    },
    terminal::{failure::Failure, output},
};

/// What a recording says of waits.
pub struct Measured {
    /// Whether the host's losses leave holes; the recording's problems.
    pub problems: Vec<String>,
    /// CPU times.
    pub times: CpuTimes,
    /// Waits as the host sees them, by VM.
    pub waits: BTreeMap<u32, VmWaits>,
    /// How long windows take.
    pub windows: WindowTimes,
    /// What the guests measured, by the recording's number of the VM.
    pub guests: BTreeMap<u32, GuestVm>,
    /// Nanoseconds of a TSC tick.
    pub tick_ns: Option<f64>,
}

/// Reads the recording and prints the tables.
pub fn run(arguments: &ThresholdArguments) -> Result<(), Failure> {
    let recorded = recordings::open(&arguments.folder)?;
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

impl Measured {
    /// Waits as the host sees them: of one VM, or of all.
    pub fn host_histogram(&self, vm: Option<u32>) -> WaitHistogram {
        let mut histogram = WaitHistogram::default();
        for (_, waits) in self
            .waits
            .iter()
            .filter(|(other, _)| is_wanted(vm, **other))
        {
            histogram.merge(&waits.histogram);
        }
        histogram
    }

    /// Waits for locks as the guests measured them; `None`: they did not tell.
    pub fn guest_histogram(&self, vm: Option<u32>) -> Option<WaitHistogram> {
        let tick_ns = self.tick_ns?;
        let mut sum: Option<WaitHistogram> = None;
        for (_, guest) in self
            .guests
            .iter()
            .filter(|(other, _)| is_wanted(vm, **other))
        {
            let counts = guest.lock_wait_count.as_slice().try_into().ok()?;
            let sums = guest.lock_wait_sum_cycles.as_slice().try_into().ok()?;
            let histogram = WaitHistogram::new(counts, sums, tick_ns);
            match &mut sum {
                Some(sum) => sum.merge(&histogram),
                None => sum = Some(histogram),
            }
        }
        sum
    }

    /// CPU time in the recording: of one VM, or of all; nanoseconds.
    pub fn running_ns(&self, vm: Option<u32>) -> u64 {
        let vms = self.times.vm_ns.iter();
        vms.filter(|(other, _)| is_wanted(vm, **other))
            .map(|(_, &ns)| ns)
            .sum()
    }

    /// The shortest wait that the host can see.
    pub fn unseen_below_ns(&self, vm: Option<u32>) -> Option<u64> {
        let vms = self.waits.keys().filter(|other| is_wanted(vm, **other));
        vms.filter_map(|&vm| self.windows.shortest_ns(vm)).min()
    }
}

fn is_wanted(vm: Option<u32>, other: u32) -> bool {
    vm.is_none_or(|vm| vm == other)
}
