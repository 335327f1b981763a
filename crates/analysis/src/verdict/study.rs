// SPDX-License-Identifier: MIT OR Apache-2.0
//! One pass over a recording: what verdicts, time lines and distributions are made of. Of bounded size, however long it is.

use std::collections::BTreeMap;

use unspin_events::{Event, What, facts::Facts};

use super::{
    figures::{Sight, VmFigures},
    series::Series,
    states::{State, StateWalk, Stay},
    wakers::Wakers,
};
use crate::{
    Source,
    explain::{
        attribution::{EVENTS_MAX, Explainer, Explanation, Options},
        cause::Cause,
        ground_truth::Slice,
    },
    waits::{histogram::WaitHistogram, spin_locations::Naming},
};

/// Bins of a VM's series: a recording of 27 minutes has bins of at most 2 s.
pub const VM_BINS_MAX: usize = 1_024;
/// Bins of a lane.
pub const LANE_BINS_MAX: usize = 512;
/// VMs that are told apart on one pCPU; further ones count as other VMs.
const OWNERS_MAX: usize = 32;
/// Stops that are shorter are none: threads of a VMM sleep for locks, too.
const STOP_MIN_NS: u64 = 100_000_000;
/// Slices of spin time that are kept for the picture of the worst moment; 40 bytes each.
const SLICES_MAX: usize = 1 << 20;

/// Kinds of a VM's series: five of time, then the causes of spin time in the order of [`Cause::ALL`].
pub const RUNNING: usize = 0;
/// Could run, and had no CPU.
pub const WAITING: usize = 1;
/// Asleep after a halt.
pub const HALTED: usize = 2;
/// Asleep for I/O.
pub const IO: usize = 3;
/// Asleep, and stopped.
pub const STOPPED: usize = 4;
/// The first of the causes.
pub const CAUSES: usize = 5;
/// How many kinds there are.
pub const KINDS: usize = CAUSES + Cause::ALL.len();

/// Kinds of a vCPU's lane: on a CPU, waiting for one, spinning for somebody off its CPU, spinning otherwise, asleep.
pub const LANE_KINDS: usize = 5;

/// A VM's part of it.
#[derive(Clone, Debug)]
pub struct VmStudy {
    /// What its verdict follows from.
    pub figures: VmFigures,
    /// The same over time.
    pub series: Series<KINDS>,
    /// Its vCPUs' lanes.
    pub lanes: BTreeMap<u16, Series<LANE_KINDS>>,
    /// How long its vCPUs waited for a CPU each time.
    pub waits: WaitHistogram,
    /// How long they ran each time.
    pub runs: WaitHistogram,
    /// How long they slept each time.
    pub sleeps: WaitHistogram,
    first_ns: u64,
    last_ns: u64,
    stopped_since_ns: Option<u64>,
}

/// Who had a pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A VM.
    Vm(u32),
    /// One of too many VMs.
    OtherVm,
    /// A task of the host that followed a vCPU, or others after it.
    Host,
}

/// All of it.
#[derive(Debug)]
pub struct Study {
    /// Spin time and whom it can be blamed on.
    pub explanation: Explanation,
    /// By VM.
    pub vms: BTreeMap<u32, VmStudy>,
    /// Who had each pCPU over time.
    pub cpus: BTreeMap<u16, BTreeMap<Owner, Series<1>>>,
    /// Whether spinning is seen.
    pub sight: Sight,
    /// Times of the first and the last event; equal without events.
    pub span_ns: (u64, u64),
    /// Events.
    pub events: u64,
    /// Slices of spin time by VM, in order of time for each vCPU; of a long recording the first ones.
    pub slices: Vec<(u32, Slice)>,
}

/// Studies all that `source` has.
pub fn study(source: &mut Source, naming: Naming) -> Study {
    let mut studying = Studying::new(&source.facts, naming);
    source.each(|event| studying.push(event));
    studying.finish()
}

/// Studies these events, in order of time.
pub fn study_events(
    facts: &Facts,
    naming: Naming,
    events: impl IntoIterator<Item = Event>,
) -> Study {
    let mut studying = Studying::new(facts, naming);
    events.into_iter().for_each(|event| studying.push(event));
    studying.finish()
}

struct Studying {
    explainer: Explainer,
    facts: Facts,
    wakers: Wakers,
    walk: StateWalk,
    occupied: BTreeMap<u16, (Option<Owner>, u64)>,
    study: Study,
}

impl Studying {
    fn new(facts: &Facts, naming: Naming) -> Studying {
        let options = Options {
            naming,
            ipis_seen: facts.ipi.blind.is_none(),
            minimum_wait_ns: 0,
            waits_max: 1,
            events_max: EVENTS_MAX,
            keep_slices: true,
        };
        Studying {
            explainer: Explainer::new(options),
            facts: facts.clone(),
            wakers: Wakers::of(facts),
            walk: StateWalk::default(),
            occupied: BTreeMap::new(),
            study: Study {
                explanation: Explanation::default(),
                vms: BTreeMap::new(),
                cpus: BTreeMap::new(),
                sight: Sight::Seen,
                span_ns: (0, 0),
                events: 0,
                slices: Vec::new(),
            },
        }
    }

    fn push(&mut self, event: Event) {
        let study = &mut self.study;
        if study.events == 0 {
            study.span_ns = (event.time_ns, event.time_ns);
        }
        study.events += 1;
        study.span_ns.1 = study.span_ns.1.max(event.time_ns);
        let first_ns = study.span_ns.0;
        if let Some(vm) = event.vm {
            let of = study
                .vms
                .entry(vm)
                .or_insert_with(|| VmStudy::new(first_ns, event.time_ns));
            of.last_ns = of.last_ns.max(event.time_ns);
            of.figures.pause_exits += u64::from(matches!(event.what, What::PauseExit { .. }));
        }
        let (wakers, vms) = (&self.wakers, &mut study.vms);
        self.walk.see(&event, |stay| add_stay(vms, wakers, &stay));
        self.follow_stops(&event);
        self.follow_cpu(&event);
        self.explainer.push(event);
        self.take_slices();
    }

    fn follow_stops(&mut self, event: &Event) {
        if matches!(event.what, What::Lost { .. }) {
            for of in self.study.vms.values_mut() {
                of.end_stop(event.time_ns);
            }
        }
        let Some((vm, of)) = event
            .vm
            .and_then(|vm| Some((vm, self.study.vms.get_mut(&vm)?)))
        else {
            return;
        };
        match self.walk.is_stopped(vm) {
            true => {
                of.stopped_since_ns.get_or_insert(event.time_ns);
            }
            false => of.end_stop(event.time_ns),
        }
    }

    fn follow_cpu(&mut self, event: &Event) {
        let owner = match event.what {
            What::SwitchIn { .. } => event.vm.map(Owner::Vm),
            What::SwitchOut { next_thread: 0, .. } => None,
            What::SwitchOut {
                next_vm: Some(vm), ..
            } => Some(Owner::Vm(vm)),
            What::SwitchOut { .. } => Some(Owner::Host),
            What::Lost { .. } => {
                self.occupied.clear();
                return;
            }
            _ => return,
        };
        let before = self.occupied.insert(event.cpu, (owner, event.time_ns));
        if let Some((Some(owner), since_ns)) = before {
            self.add_owner(event.cpu, owner, since_ns, event.time_ns);
        }
    }

    fn add_owner(&mut self, cpu: u16, owner: Owner, begin_ns: u64, end_ns: u64) {
        let owners = self.study.cpus.entry(cpu).or_default();
        let owner = match owners.len() >= OWNERS_MAX && !owners.contains_key(&owner) {
            true => Owner::OtherVm,
            false => owner,
        };
        let first_ns = self.study.span_ns.0;
        let series = owners
            .entry(owner)
            .or_insert_with(|| Series::new(first_ns, LANE_BINS_MAX));
        series.add(0, begin_ns, end_ns);
    }

    fn take_slices(&mut self) {
        for (vm, slice) in self.explainer.take_slices() {
            add_slice(&mut self.study, vm, slice);
        }
    }

    fn finish(mut self) -> Study {
        let end_ns = self.study.span_ns.1;
        for (cpu, (owner, since_ns)) in std::mem::take(&mut self.occupied) {
            if let Some(owner) = owner {
                self.add_owner(cpu, owner, since_ns, end_ns);
            }
        }
        let Studying {
            walk,
            explainer,
            facts,
            wakers,
            mut study,
            ..
        } = self;
        let vms = &mut study.vms;
        walk.finish(|stay| add_stay(vms, &wakers, &stay));
        let mut explanation = explainer.finish();
        let rest: Vec<(u32, Slice)> = explanation
            .vms
            .iter_mut()
            .flat_map(|(&vm, of)| of.slices.drain(..).map(move |slice| (vm, slice)))
            .collect();
        for (vm, slice) in rest {
            add_slice(&mut study, vm, slice);
        }
        for (vm, of) in &mut study.vms {
            of.end_stop(end_ns);
            of.figures.seen_ns = of.last_ns - of.first_ns;
            if let Some(explained) = explanation.vms.get(vm) {
                of.figures.spin_time = explained.spin_time;
            }
        }
        study.explanation = explanation;
        study.sight = sight(&facts, &study);
        study.even_widths();
        study
    }
}

impl Study {
    /// Lanes of all VMs and pCPUs have bins of one width.
    fn even_widths(&mut self) {
        let lanes = self
            .vms
            .values()
            .flat_map(|of| of.lanes.values().map(Series::width_ns));
        let cpus = self
            .cpus
            .values()
            .flat_map(|owners| owners.values().map(Series::width_ns));
        let width_ns = lanes.chain(cpus).max().unwrap_or(0);
        let lanes = self.vms.values_mut().flat_map(|of| of.lanes.values_mut());
        lanes.for_each(|lane| lane.widen_to(width_ns));
        let cpus = self
            .cpus
            .values_mut()
            .flat_map(|owners| owners.values_mut());
        cpus.for_each(|lane| lane.widen_to(width_ns));
        let width_ns = self
            .vms
            .values()
            .map(|of| of.series.width_ns())
            .max()
            .unwrap_or(0);
        self.vms
            .values_mut()
            .for_each(|of| of.series.widen_to(width_ns));
    }
}

impl VmStudy {
    fn new(first_ns: u64, now_ns: u64) -> VmStudy {
        VmStudy {
            figures: VmFigures::default(),
            series: Series::new(first_ns, VM_BINS_MAX),
            lanes: BTreeMap::new(),
            waits: WaitHistogram::default(),
            runs: WaitHistogram::default(),
            sleeps: WaitHistogram::default(),
            first_ns: now_ns,
            last_ns: now_ns,
            stopped_since_ns: None,
        }
    }

    fn end_stop(&mut self, now_ns: u64) {
        let Some(since_ns) = self.stopped_since_ns.take() else {
            return;
        };
        let length_ns = now_ns.saturating_sub(since_ns);
        if length_ns >= STOP_MIN_NS {
            self.figures.stopped_ns += length_ns;
            self.figures.longest_stop_ns = self.figures.longest_stop_ns.max(length_ns);
        }
    }

    fn lane(&mut self, vcpu: u16, first_ns: u64) -> &mut Series<LANE_KINDS> {
        self.lanes
            .entry(vcpu)
            .or_insert_with(|| Series::new(first_ns, LANE_BINS_MAX))
    }
}

fn add_stay(vms: &mut BTreeMap<u32, VmStudy>, wakers: &Wakers, stay: &Stay) {
    let Some(of) = vms.get_mut(&stay.vm) else {
        return;
    };
    let length_ns = stay.end_ns - stay.begin_ns;
    let figures = &mut of.figures;
    let (sum, kind, lane, lengths) = match stay.state {
        State::Running => (&mut figures.running_ns, RUNNING, 0, &mut of.runs),
        State::Waiting => (&mut figures.waiting_ns, WAITING, 1, &mut of.waits),
        State::Device => (&mut figures.io_ns, IO, 4, &mut of.sleeps),
        State::Halted if is_io(wakers, stay) => (&mut figures.io_ns, IO, 4, &mut of.sleeps),
        State::Stopped => (&mut figures.halted_ns, STOPPED, 4, &mut of.sleeps),
        State::Halted => (&mut figures.halted_ns, HALTED, 4, &mut of.sleeps),
    };
    *sum = sum.saturating_add(length_ns);
    lengths.add(length_ns);
    of.series.add(kind, stay.begin_ns, stay.end_ns);
    let first_ns = of.series.begin_ns(0);
    of.lane(stay.vcpu, first_ns)
        .add(lane, stay.begin_ns, stay.end_ns);
}

fn is_io(wakers: &Wakers, stay: &Stay) -> bool {
    stay.waker
        .is_some_and(|waker| wakers.is_io(stay.vm, waker, stay.end_ns))
}

fn add_slice(study: &mut Study, vm: u32, slice: Slice) {
    let first_ns = study.span_ns.0;
    if let Some(of) = study.vms.get_mut(&vm) {
        of.series
            .add(CAUSES + slice.cause.index(), slice.begin_ns, slice.end_ns);
        let kind = if slice.cause.is_preemption() { 2 } else { 3 };
        of.lane(slice.vcpu, first_ns)
            .add(kind, slice.begin_ns, slice.end_ns);
    }
    if study.slices.len() < SLICES_MAX {
        study.slices.push((vm, slice));
    }
}

/// Whether pause-loop exits can be in the recording. KVM makes none where the window, or the gap, is 0 (kvm_amd:
/// pause_filter_count; kvm_intel: ple_gap; arch/x86/kvm, Linux 7.2).
fn sight(facts: &Facts, study: &Study) -> Sight {
    let any = study.vms.values().any(|of| of.figures.pause_exits > 0);
    let (window, gap) = facts.kvm.window_and_gap();
    let module = facts.kvm.module.as_deref().unwrap_or("kvm");
    let off = match module {
        "kvm_amd" if window == Some(0) => Some("pause_filter_count"),
        "kvm_intel" if gap == Some(0) => Some("ple_gap"),
        "kvm_intel" if window == Some(0) => Some("ple_window"),
        _ => None,
    };
    if any {
        return Sight::Seen;
    }
    if !facts.kinds.is_empty() && !facts.kinds.iter().any(|kind| kind == "pause_exit") {
        return Sight::Blind("pause-loop exits were not recorded".to_owned());
    }
    match off {
        Some(parameter) => {
            Sight::Blind(format!("pause-loop exits are off ({module} {parameter}=0)"))
        }
        None if window.is_none() => Sight::Blind(
            "there is no pause-loop exit, and KVM's parameters are not known".to_owned(),
        ),
        None => Sight::Seen,
    }
}
