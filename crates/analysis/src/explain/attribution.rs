// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attribution: who spent CPU time spinning, for whom, and who ran instead of that one. From what the host saw, and pv pages where a
//! guest gives them; the guests' own logs never come in here.
//!
//! Memory: [`EVENTS_MAX`] events at a time. A longer stream is judged in parts; a wait that spans two parts counts as two.

use std::collections::BTreeMap;

use unspin_events::{Event, What};

use crate::{
    Source,
    explain::{
        cause::{Cause, CauseTimes},
        ground_truth::Slice,
    },
    waits::{
        host_waits::HostWait,
        presence::{Left, Occupant, Occupants},
        spin_locations::Naming,
        vm_record::{SpinLoop, VmRecord},
    },
};

/// Events judged together: 64 bytes each, and about as much again for what follows from them.
pub const EVENTS_MAX: usize = 2 << 20;
/// How far back a loss reaches: events may be missing since the ring was emptied before, every 20 ms unless the reader
/// was held up; ten times that.
const LOSS_SHADOW_NS: u64 = 200_000_000;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Symbols of the guests.
    pub naming: Naming,
    /// Whether the host saw IPIs; without them lock and function call are told apart by symbols only.
    pub ipis_seen: bool,
    /// Waits that spun for less are not listed one by one; nanoseconds.
    pub minimum_wait_ns: u64,
    /// The longest so many are listed.
    pub waits_max: usize,
    /// Events judged together, see [`EVENTS_MAX`].
    pub events_max: usize,
    /// Keep every slice, for a comparison with the ground truth or a picture.
    pub keep_slices: bool,
}

/// Explains all that `source` has.
pub fn explain(source: &mut Source, options: Options) -> Explanation {
    let mut explainer = Explainer::new(options);
    source.each(|event| explainer.push(event));
    explainer.finish()
}

/// What came of it, by VM.
#[derive(Debug, Default)]
pub struct Explanation {
    /// One for each VM that had events.
    pub vms: BTreeMap<u32, VmExplanation>,
    /// Times of the first and the last event.
    pub span_ns: Option<(u64, u64)>,
    /// Losses that made something unknown.
    pub losses: u64,
}

/// One VM.
#[derive(Debug, Default)]
pub struct VmExplanation {
    /// CPU time of its vCPUs.
    pub cpu_ns: u64,
    /// Of it, spent spinning, by cause.
    pub spin_time: CauseTimes,
    /// SpinTime for which vCPU, while who ran instead of that one; nanoseconds.
    pub blame: BTreeMap<Blame, u64>,
    /// Waits rebuilt.
    pub waits: u64,
    /// The longest ones, longest first.
    pub longest: Vec<ExplainedWait>,
    /// Its spin loops; of several parts, as the last one saw them, with counts of all.
    pub loops: BTreeMap<Option<u64>, LoopSum>,
    /// The longest of its pause-loop windows.
    pub window_ns: u64,
    /// All slices, if wanted.
    pub slices: Vec<Slice>,
}

/// Who is to blame for spin time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Blame {
    /// Why.
    pub cause: Cause,
    /// vCPU of the same VM that was waited for.
    pub vcpu: Option<u16>,
    /// Who had the CPU that it had left (of another VM: vCPU 0 stands for all); `None`: not known, or it had a CPU itself.
    pub instead: Option<Occupant>,
}

/// A wait, and what it was for.
#[derive(Clone, Debug)]
pub struct ExplainedWait {
    /// As the host rebuilt it.
    pub wait: HostWait,
    /// SpinTime time by cause.
    pub spin_time: CauseTimes,
    /// The cause of most of it, if it is certain.
    pub cause: Cause,
    /// Who was waited for longest for that cause, and its absence.
    pub blamed: Option<(u16, Option<Absence>)>,
    /// Who ran instead for longest.
    pub instead: Option<Occupant>,
}

/// Time off a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// Since when.
    pub since_ns: u64,
    /// Until when; `None`: it did not come back in the events at hand.
    pub until_ns: Option<u64>,
    /// How it left.
    pub left: Left,
}

/// A spin loop and the CPU time spent in it.
#[derive(Clone, Debug)]
pub struct LoopSum {
    /// What it is; its counts are those of all parts.
    pub spin_loop: SpinLoop,
    /// SpinTime time by cause.
    pub spin_time: CauseTimes,
}

/// Takes events in order of time, and explains.
#[derive(Debug)]
pub struct Explainer {
    options: Options,
    events: Vec<Event>,
    carried: BTreeMap<(u32, u16), Event>,
    explanation: Explanation,
}

impl Explainer {
    /// Nothing yet.
    pub fn new(options: Options) -> Explainer {
        Explainer {
            options,
            events: Vec::new(),
            carried: BTreeMap::new(),
            explanation: Explanation::default(),
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: Event) {
        let time_ns = event.time_ns;
        let span = self.explanation.span_ns.get_or_insert((time_ns, time_ns));
        span.1 = span.1.max(time_ns);
        if let What::Lost { lost_kind, .. } = event.what {
            if matters(lost_kind) {
                self.explanation.losses += 1;
                self.judge(Some(time_ns));
                self.carried.clear();
            }
            return;
        }
        self.events.push(event);
        if self.events.len() >= self.options.events_max {
            self.judge(None);
        }
    }

    /// Takes the slices that were found since the last time, with their VM: a long stream's need not be kept.
    pub fn take_slices(&mut self) -> impl Iterator<Item = (u32, Slice)> + '_ {
        let vms = self.explanation.vms.iter_mut();
        vms.flat_map(|(&vm, of)| of.slices.drain(..).map(move |slice| (vm, slice)))
    }

    /// No more events.
    pub fn finish(mut self) -> Explanation {
        self.judge(None);
        self.explanation
    }

    /// Judges what is at hand. `lost_ns`: events are missing before then.
    fn judge(&mut self, lost_ns: Option<u64>) {
        let mut events: Vec<Event> = self.carried.values().copied().collect();
        events.sort_by_key(|event| event.time_ns);
        let begin_ns = self.events.first().map_or(0, |event| event.time_ns);
        events.append(&mut self.events);
        let mut vms: Vec<u32> = Vec::new();
        let mut occupants = Occupants::default();
        for event in &events {
            occupants.follow(event);
            let (Some(vm), Some(vcpu)) = (event.vm, event.vcpu) else {
                continue;
            };
            if let Err(place) = vms.binary_search(&vm) {
                vms.insert(place, vm);
            }
            if matches!(event.what, What::SwitchIn { .. } | What::SwitchOut { .. }) {
                self.carried.insert((vm, vcpu), *event);
            }
        }
        let shadow_ns = lost_ns.map_or(u64::MAX, |lost_ns| lost_ns.saturating_sub(LOSS_SHADOW_NS));
        for vm in vms {
            let record = VmRecord::new(vm, &events, &self.options.naming, self.options.ipis_seen);
            let part = Part {
                vm,
                begin_ns,
                end_ns: events.last().map_or(0, |event| event.time_ns),
                record: &record,
                occupants: &occupants,
                shadow_ns,
            };
            let sum = self.explanation.vms.entry(vm).or_default();
            part.add_to(sum, &self.options, &events);
        }
    }
}

/// Whether the missing events of that kind (`enum unspin_event_kind`, 0: any) could change an explanation.
fn matters(kind: u32) -> bool {
    use unspin_abi as abi;
    !matches!(
        kind,
        abi::UNSPIN_EVENT_WAKEUP
            | abi::UNSPIN_EVENT_ON_SPIN
            | abi::UNSPIN_EVENT_YIELD_TO
            | abi::UNSPIN_EVENT_EXIT
            | abi::UNSPIN_EVENT_ENTRY
            | abi::UNSPIN_EVENT_GUEST_WAIT
    )
}

/// One VM in one part of the stream.
struct Part<'a> {
    vm: u32,
    begin_ns: u64,
    end_ns: u64,
    record: &'a VmRecord,
    occupants: &'a Occupants,
    shadow_ns: u64,
}

impl Part<'_> {
    fn add_to(&self, sum: &mut VmExplanation, options: &Options, events: &[Event]) {
        let own = events
            .iter()
            .find(|event| event.vm == Some(self.vm) && event.time_ns >= self.begin_ns);
        let first_ns = own.map_or(self.begin_ns, |event| event.time_ns);
        for presence in self.record.presence().values() {
            let pieces = presence.on_between(first_ns, self.end_ns);
            sum.cpu_ns += pieces.iter().map(|(begin, end)| end - begin).sum::<u64>();
        }
        sum.window_ns = sum.window_ns.max(self.record.times().window_ns);
        for (location, spin_loop) in self.record.loops() {
            let known = sum.loops.entry(*location).or_insert_with(|| LoopSum {
                spin_loop: SpinLoop {
                    waits: 0,
                    exits: 0,
                    ..spin_loop.clone()
                },
                spin_time: CauseTimes::default(),
            });
            let (waits, exits) = (known.spin_loop.waits, known.spin_loop.exits);
            known.spin_loop = spin_loop.clone();
            known.spin_loop.forget_ends();
            known.spin_loop.waits += waits;
            known.spin_loop.exits += exits;
        }
        for wait in self.record.waits() {
            self.add_wait(sum, wait, options);
        }
        sum.longest
            .sort_by_key(|wait| std::cmp::Reverse(wait.spin_time.total()));
        sum.longest.truncate(options.waits_max);
    }

    fn add_wait(&self, sum: &mut VmExplanation, wait: &HostWait, options: &Options) {
        let mut slices = Vec::new();
        self.record.explain_wait(wait, &mut slices);
        let mut spin_time = CauseTimes::default();
        let mut blames: BTreeMap<Blame, u64> = BTreeMap::new();
        for slice in &mut slices {
            if slice.end_ns > self.shadow_ns {
                (slice.cause, slice.blamed) = (Cause::Unknown, None);
            }
            spin_time.add(slice.cause, slice.end_ns - slice.begin_ns);
            self.blame(slice, &mut blames);
        }
        for (blame, ns) in &blames {
            *sum.blame.entry(*blame).or_default() += ns;
        }
        sum.spin_time.merge(&spin_time);
        sum.waits += 1;
        if let Some(known) = sum.loops.get_mut(&wait.location) {
            known.spin_time.merge(&spin_time);
        }
        if spin_time.total() >= options.minimum_wait_ns.max(1) {
            sum.longest
                .push(self.explained(wait, spin_time, &blames, &slices));
            if sum.longest.len() > 4 * options.waits_max.max(1) {
                sum.longest
                    .sort_by_key(|wait| std::cmp::Reverse(wait.spin_time.total()));
                sum.longest.truncate(options.waits_max);
            }
        }
        if options.keep_slices {
            sum.slices.append(&mut slices);
        }
    }

    fn blame(&self, slice: &Slice, blames: &mut BTreeMap<Blame, u64>) {
        let absence = self.absence(slice.blamed, slice.begin_ns);
        let Some(absence) = absence.filter(|_| slice.cause.is_preemption()) else {
            let blame = Blame {
                cause: slice.cause,
                vcpu: slice.blamed.filter(|_| slice.cause.is_preemption()),
                instead: None,
            };
            *blames.entry(blame).or_default() += slice.end_ns - slice.begin_ns;
            return;
        };
        let pieces = self
            .occupants
            .between(absence.left.cpu, slice.begin_ns, slice.end_ns);
        for (ns, instead) in pieces {
            // One's own vCPUs are told apart, another VM is one VM.
            let instead = instead.map(|who| match who {
                Occupant::Vcpu { vm, .. } if vm != self.vm => Occupant::Vcpu { vm, vcpu: 0 },
                who => who,
            });
            let blame = Blame {
                cause: slice.cause,
                vcpu: slice.blamed,
                instead,
            };
            *blames.entry(blame).or_default() += ns;
        }
    }

    fn absence(&self, vcpu: Option<u16>, at_ns: u64) -> Option<Absence> {
        let presence = self.record.presence().get(&vcpu?)?;
        let (since_ns, place) = presence.at(at_ns);
        Some(Absence {
            since_ns,
            until_ns: presence.on_after(at_ns),
            left: *place.left()?,
        })
    }

    fn explained(
        &self,
        wait: &HostWait,
        spin_time: CauseTimes,
        blames: &BTreeMap<Blame, u64>,
        slices: &[Slice],
    ) -> ExplainedWait {
        let margin_ns = CauseTimes::margin_ns(self.record.times().window_ns);
        let cause = spin_time.certain(margin_ns).unwrap_or(Cause::Unknown);
        let most = blames
            .iter()
            .filter(|(blame, _)| blame.cause == cause)
            .max_by_key(|(_, ns)| **ns)
            .map(|(blame, _)| *blame);
        let vcpu = most.and_then(|blame| blame.vcpu);
        let slice = slices
            .iter()
            .find(|slice| slice.cause == cause && slice.blamed == vcpu);
        let absence = slice.and_then(|slice| self.absence(vcpu, slice.begin_ns));
        ExplainedWait {
            wait: wait.clone(),
            spin_time,
            cause,
            blamed: vcpu.map(|vcpu| (vcpu, absence)),
            instead: most.and_then(|blame| blame.instead),
        }
    }
}
