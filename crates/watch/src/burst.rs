// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sampled burst: for a moment every switch and pause-loop exit is an event, and `explain`'s analysis says for whom VMs spun.
//!
//! What a guest writes in its memory is not looked at: pv pages are not asked for.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use unspin_agent::{EventMask, Names, ObserveOptions, Observer, host_facts, monotonic_ns};
use unspin_analysis::{
    explain::attribution::{Blame, Explainer, Explanation, Options, VmExplanation},
    explain::cause::Cause,
    waits::{presence::Occupant, spin_locations::Naming},
};
use unspin_events::{
    Event,
    facts::{Facts, IpiSight},
};

use crate::view::SampledView;

/// How often the ring is emptied.
const DRAIN_INTERVAL: Duration = Duration::from_millis(5);
/// A burst ends when it has so many events: 64 bytes each, twice while they are judged.
const EVENTS_MAX: usize = 100_000;
/// Room for more than those: an event takes 56 bytes.
const RING_BYTES: u32 = 8 << 20;
/// Whom a VM's spin time is blamed on: so many of the largest are kept of a burst.
const BLAMES_MAX: usize = 16;

/// What came of a burst.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    /// How long it lasted; ns.
    pub(crate) lasted_ns: u64,
    /// Events that found no room.
    pub(crate) lost_events: u64,
    /// What each VM spun for.
    pub(crate) vms: Vec<VmBurst>,
}

/// One VM in a burst.
#[derive(Debug, Default)]
pub(crate) struct VmBurst {
    /// Its vCPUs' threads, by which the watcher knows it.
    pub(crate) threads: Vec<u32>,
    pub(crate) sampled: SampledView,
    pub(crate) blame: Vec<(Cause, Option<u16>, Instead, u64)>,
}

/// Who ran on the CPU that the one who was waited for had left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Instead {
    /// The VM's own vCPU.
    Own(u16),
    /// Another VM, by one of its threads.
    OtherVm(u32),
    /// Another task, or a VM of which no thread is known.
    Named(String),
    /// The idle task.
    Nobody,
    /// Not known.
    Unknown,
}

/// Watches every event for so long, or until there are enough of them, or `stop` is set. `vcpus`: threads of vCPUs that there are.
///
/// # Errors
/// When the programs cannot be attached or read; then nothing stays attached.
pub(crate) fn burst(
    length: Duration,
    vcpus: usize,
    stop: &AtomicBool,
) -> Result<Burst, unspin_agent::Error> {
    let options = ObserveOptions {
        events: EventMask::SWITCHES
            .and(EventMask::PAUSE_LOOPS)
            .and(EventMask::IPIS),
        ring_bytes: RING_BYTES,
        threads_max: threads_max(vcpus),
        ..ObserveOptions::default()
    };
    let facts = host_facts(&options);
    let mut observer = Observer::attach(&options)?;
    let began = Instant::now();
    let (mut events, mut names, mut lost) = (Vec::new(), Names::default(), 0);
    while began.elapsed() < length && events.len() < EVENTS_MAX && !stop.load(Ordering::Relaxed) {
        thread::sleep(DRAIN_INTERVAL);
        observer.drain(&mut |event| {
            names.see(&event);
            events.push(event);
        })?;
        names.look();
        let lost_by_now = observer.lost()?.iter().sum();
        if lost_by_now > lost {
            events.push(lost_event(lost_by_now - lost));
            lost = lost_by_now;
        }
    }
    let lasted_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    drop(observer);
    let facts = Facts {
        vms: names.vms().to_vec(),
        tasks: names.tasks().to_vec(),
        ..facts
    };
    Ok(Burst {
        lasted_ns,
        lost_events: lost,
        vms: judge(events, &facts),
    })
}

/// A quarter more than there are, for those that come meanwhile.
fn threads_max(vcpus: usize) -> u32 {
    const MOST: usize = 65_536; // ObserveOptions::threads_max
    u32::try_from((vcpus + vcpus / 4 + 64).min(MOST)).unwrap_or(64)
}

fn lost_event(events: u64) -> Event {
    Event::lost(monotonic_ns(), events, 0)
}

fn judge(mut events: Vec<Event>, facts: &Facts) -> Vec<VmBurst> {
    // CPUs write in their own order.
    events.sort_by_key(|event| event.time_ns);
    let mut explainer = Explainer::new(options(&facts.ipi));
    events.into_iter().for_each(|event| explainer.push(event));
    by_vm(&explainer.finish(), facts)
}

/// How a stream without symbols is explained, waits not listed one by one.
pub(crate) fn options(ipi: &IpiSight) -> Options {
    Options {
        naming: Naming::default(),
        ipis_seen: ipi.blind.is_none(),
        minimum_wait_ns: u64::MAX,
        waits_max: 0,
        events_max: unspin_analysis::explain::attribution::EVENTS_MAX,
        keep_slices: false,
    }
}

/// What an explanation says of each VM.
pub(crate) fn by_vm(explanation: &Explanation, facts: &Facts) -> Vec<VmBurst> {
    let end_ns = explanation.span_ns.map_or(0, |(_, end_ns)| end_ns);
    let vms = explanation.vms.iter();
    vms.map(|(&vm, of)| VmBurst {
        threads: threads_of(facts, vm).collect(),
        sampled: sampled(of),
        blame: blame(vm, of, facts, end_ns),
    })
    .collect()
}

fn threads_of(facts: &Facts, vm: u32) -> impl Iterator<Item = u32> {
    let vcpus = facts.vm(vm).into_iter().flat_map(|vm| &vm.vcpus);
    vcpus.map(|vcpu| vcpu.thread)
}

fn sampled(of: &VmExplanation) -> SampledView {
    let causes = Cause::ALL.into_iter();
    SampledView {
        cpu_ns: of.cpu_ns,
        spin_ns: causes
            .map(|cause| (cause.name().to_owned(), of.spin_time.of(cause)))
            .collect(),
    }
}

fn blame(
    vm: u32,
    of: &VmExplanation,
    facts: &Facts,
    end_ns: u64,
) -> Vec<(Cause, Option<u16>, Instead, u64)> {
    // All vCPUs of another VM are one.
    let mut sums: BTreeMap<(Cause, Option<u16>, Instead), u64> = BTreeMap::new();
    for (blame, ns) in &of.blame {
        let whom = blame.vcpu.filter(|_| blame.cause.is_preemption());
        let key = (blame.cause, whom, instead(vm, blame, facts, end_ns));
        *sums.entry(key).or_default() += ns;
    }
    let mut largest: Vec<_> = sums
        .into_iter()
        .map(|((cause, vcpu, instead), ns)| (cause, vcpu, instead, ns))
        .collect();
    largest.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
    largest.truncate(BLAMES_MAX);
    largest
}

fn instead(vm: u32, blame: &Blame, facts: &Facts, end_ns: u64) -> Instead {
    match blame.instead {
        None => Instead::Unknown,
        Some(Occupant::Idle) => Instead::Nobody,
        Some(Occupant::Vcpu { vm: other, vcpu }) if other == vm => Instead::Own(vcpu),
        Some(Occupant::Vcpu { vm: other, .. }) => threads_of(facts, other)
            .next()
            .map_or_else(|| Instead::Named(facts.vm_name(other)), Instead::OtherVm),
        Some(Occupant::Task(thread)) => Instead::Named(facts.task_at(thread, end_ns).map_or_else(
            || format!("thread {thread}"),
            |task| format!("{} ({thread})", task.comm),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_vcpus_that_come_meanwhile() {
        assert_eq!(threads_max(0), 64);
        assert_eq!(threads_max(8_000), 10_064);
        assert_eq!(threads_max(1_000_000), 65_536);
    }

    #[test]
    fn a_burst_without_events_blames_nobody() {
        assert!(judge(Vec::new(), &Facts::default()).is_empty());
    }
}
