// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording shows of each VM, as far as a scenario needs it.

use std::collections::{BTreeMap, BTreeSet};

use unspin_analysis::{CpuTimer, SpinWaits, Survey, WAIT_BUCKETS, WaitHistogram, WindowTimes};
use unspin_events::{Event, GuestMode, What};
use unspin_recording::Recorded;

/// A recording, summarised.
pub(super) struct Seen {
    /// The VMs, by their numbers in the recording.
    pub vms: BTreeMap<u32, VmSeen>,
    /// What is missing or damaged.
    pub problems: Vec<String>,
    cpus: BTreeSet<u16>,
    survey: Survey,
    /// CPU time of tasks of no VM on pCPUs between vCPUs' slices, ns.
    others_ns: u64,
}

/// A VM.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct VmSeen {
    /// The highest vCPU number, plus one.
    pub vcpus: usize,
    /// CPU time of its vCPUs, ns.
    pub running_ns: u64,
    /// CPU time in waits that ended in pause-loop exits, ns.
    pub spinning_ns: u64,
    /// CPU time in the host for these exits, ns.
    pub handling_ns: u64,
    /// Number of waits.
    pub waits: u64,
    /// The median wait, ns (to a factor of two); `None`: there are no waits.
    pub median_wait_ns: Option<u64>,
    /// How often a vCPU was descheduled in user mode, and in kernel mode, if the host could see that.
    pub preempted_user: u64,
    /// See `preempted_user`.
    pub preempted_kernel: u64,
}

impl Seen {
    /// Reads the recording twice: first the times of windows, then the waits.
    pub fn of(recorded: &Recorded) -> Seen {
        let (mut windows, mut timer) = (WindowTimes::default(), CpuTimer::default());
        let (mut survey, mut cpus) = (Survey::default(), BTreeSet::new());
        let mut vms: BTreeMap<u32, VmSeen> = BTreeMap::new();
        let mut events = recorded.events();
        for event in events.by_ref() {
            windows.see(&event);
            timer.see(&event);
            survey.add(&event);
            if let Some(vm) = event.vm {
                look(vms.entry(vm).or_default(), &event);
            }
            if event.vcpu.is_some()
                && matches!(event.what, What::SwitchIn { .. } | What::SwitchOut { .. })
            {
                cpus.insert(event.cpu);
            }
        }
        let mut problems = [recorded.problems(), &events.problems()].concat();
        match survey.lost_events {
            Some(0) => {}
            Some(lost) => problems.push(format!("{lost} events were lost")),
            None => problems.push("events were lost, their number is unknown".to_owned()),
        }
        let mut waits = SpinWaits::new(&windows);
        recorded.events().for_each(|event| waits.see(&event));
        let times = timer.finish();
        for (vm, waits) in waits.finish() {
            let seen = vms.entry(vm).or_default();
            seen.spinning_ns = waits.spinning_ns;
            seen.handling_ns = waits.handling_ns;
            seen.waits = waits.histogram.waits();
            seen.median_wait_ns = median_ns(&waits.histogram);
        }
        for (vm, seen) in &mut vms {
            seen.running_ns = times.vm_ns.get(vm).copied().unwrap_or(0);
            let named = survey.vms.get(vm).and_then(BTreeSet::last);
            seen.vcpus = named.map_or(0, |last| usize::from(*last) + 1);
        }
        vms.retain(|_, seen| seen.vcpus > 0);
        Seen {
            vms,
            problems,
            cpus,
            survey,
            others_ns: times.host_ns,
        }
    }

    /// pCPUs on which vCPUs have run.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Time from the first event to the last, ns.
    pub fn span_ns(&self) -> u64 {
        let span = self.survey.first_ns.zip(self.survey.last_ns);
        span.map_or(0, |(first, last)| last.saturating_sub(first))
    }

    /// The share of the observed CPU time that tasks of no VM used.
    pub fn others_share(&self) -> Option<f64> {
        let vms: u64 = self.vms.values().map(|vm| vm.running_ns).sum();
        let all = vms + self.others_ns;
        (all > 0).then(|| self.others_ns as f64 / all as f64)
    }
}

fn look(seen: &mut VmSeen, event: &Event) {
    if let What::SwitchOut {
        preempt: true,
        mode,
        ..
    } = event.what
    {
        match mode {
            Some(GuestMode::User) => seen.preempted_user += 1,
            Some(GuestMode::Kernel) => seen.preempted_kernel += 1,
            None => {}
        }
    }
}

/// The mean of the waits in the power of two that contains the median.
fn median_ns(histogram: &WaitHistogram) -> Option<u64> {
    let half = histogram.waits().div_ceil(2);
    let mut below = 0;
    (0..WAIT_BUCKETS)
        .find(|bucket| {
            below += histogram.count(*bucket);
            below >= half && histogram.count(*bucket) > 0
        })
        // A wait fits into 64 bits.
        .map(|bucket| (histogram.time_ns(bucket) / histogram.count(bucket) as f64) as u64)
}
