// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every pause-loop exit of a recording was for and what became of it: outcomes, reasons, runs, inefficiency, and the
//! IPI record, in one pass over the events. Memory is bounded by the number of vCPUs and of code locations.

pub(crate) mod epochs;
pub(crate) mod ipi_record;
pub(crate) mod pending;
pub(crate) mod reasons;
pub(crate) mod vcpu;
pub(crate) mod vm;
use std::collections::BTreeMap;

use unspin_events::{Event, What};
use unspin_policy::{Outcome, RunRule, RunShares};

use crate::{
    exits::{
        epochs::{Epochs, WindowUnit},
        ipi_record::IpiRecord,
        reasons::Locations,
        vm::Vm,
    },
    survey::{GapWalk, Moment, Survey},
};

/// What an analysis is told beside the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Whether IPIs are hidden from the host, all or some: what depends on them is then not known.
    pub ipi_blind: bool,
    /// What the pause-loop windows count.
    pub window_unit: WindowUnit,
    /// Whether the guests are known to number their interrupt vectors as Linux does.
    pub linux_vectors: bool,
}

/// Lengths of runs of one VM by one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLengths {
    /// The marks of VEE'21's Figure 4.
    pub shares: RunShares,
    /// Exits in runs of 2^b to 2^(b+1) - 1 exits.
    pub exits_by_length: BTreeMap<u32, u64>,
}

/// What is known of one VM.
#[derive(Clone, Debug, Default)]
pub struct VmExits {
    /// vCPUs that were seen.
    pub vcpus: u64,
    /// Exits by outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Exits at which a vCPU was boosted, whatever came of it.
    pub boosted: u64,
    /// Of the mismatches, those whose target had last run on the spinner's pCPU, as far as both are known: a debooster would
    /// act on them (ruling 30).
    pub mismatch_same_cpu: u64,
    /// Exits by location and evidence.
    pub locations: Locations,
    /// Runs that host interrupts end.
    pub runs: RunLengths,
    /// Runs that they do not end.
    pub runs_through_interrupts: RunLengths,
    /// Exits whose location is not known: they are in no run.
    pub exits_without_location: u64,
    /// Inefficiency.
    pub epochs: Epochs,
    /// CPU time of its vCPUs, as far as their switches are known, nanoseconds.
    pub cpu_ns: u64,
    /// Time of its first event and of its last.
    pub seen_ns: Option<(u64, u64)>,
}

/// What is known of all VMs.
#[derive(Clone, Debug, Default)]
pub struct Exits {
    /// By VM.
    pub vms: BTreeMap<u32, VmExits>,
    /// The IPI record.
    pub ipis: IpiRecord,
    /// What the analysis was told.
    pub sight: Sight,
    /// Events that are missing, as far as the recording says; `None`: some, nobody knows how many.
    pub lost_events: Option<u64>,
    /// The VM that each thread served, the last one if there were several.
    pub vm_of_thread: BTreeMap<u32, u32>,
    /// Events that came too late to be looked at: out of order.
    pub late_events: u64,
}

/// An analysis that goes on.
pub struct ExitAnalysis {
    sight: Sight,
    walk: GapWalk,
    survey: Survey,
    vms: BTreeMap<u32, Vm>,
    /// Whom each thread serves.
    served: BTreeMap<u32, (u32, u16)>,
    ipis: IpiRecord,
    now_ns: u64,
    /// Whether something was missing around the event before.
    broken: bool,
    late_events: u64,
}

impl RunLengths {
    /// Adds a run that is over.
    pub(crate) fn add(&mut self, exits: Option<u64>, vcpus: u64) {
        if let Some(exits) = exits {
            self.shares.count(exits, vcpus);
            *self.exits_by_length.entry(exits.ilog2()).or_default() += exits;
        }
    }
}

impl VmExits {
    /// All pause-loop exits.
    pub fn exits(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// How long it was seen, nanoseconds.
    pub fn seen_for_ns(&self) -> u64 {
        self.seen_ns.map_or(0, |(first, last)| last - first)
    }

    /// The runs by a rule.
    pub fn runs(&self, rule: RunRule) -> &RunLengths {
        match rule {
            RunRule::InterruptsEnd => &self.runs,
            RunRule::InterruptsIgnored => &self.runs_through_interrupts,
        }
    }
}

impl ExitAnalysis {
    /// Begins. `survey` is of the very events that will come.
    pub fn new(survey: Survey, sight: Sight) -> ExitAnalysis {
        ExitAnalysis {
            sight,
            walk: GapWalk::new(&survey.gaps),
            survey,
            vms: BTreeMap::new(),
            served: BTreeMap::new(),
            ipis: IpiRecord::default(),
            now_ns: 0,
            broken: false,
            late_events: 0,
        }
    }

    /// Takes the next event: no earlier than those before, or it is only counted as late.
    pub fn add(&mut self, event: &Event) {
        if event.time_ns < self.now_ns {
            self.late_events += 1;
            return;
        }
        self.now_ns = event.time_ns;
        let broken = self.walk.at(event.time_ns) == Moment::AfterLoss;
        if broken && !self.broken {
            self.forget();
        }
        self.broken = broken;
        let (Some(number), Some(vcpu)) = (event.vm, event.vcpu) else {
            return;
        };
        if !matches!(event.what, What::SchedWakeup { .. }) {
            self.serve(event.thread, number, vcpu);
        }
        let vcpus = self.survey.vms.get(&number);
        let vm = self
            .vms
            .entry(number)
            .or_insert_with(|| Vm::new(vcpus.into_iter().flatten().copied()));
        vm.add(event, vcpu, &self.sight, &mut self.ipis);
        if broken {
            // All others were forgotten with the first such event, and know nothing new since.
            vm.forget();
            self.ipis.forget();
        }
    }

    /// Ends: what waits for more events is not known.
    pub fn finish(mut self) -> Exits {
        self.ipis.forget();
        Exits {
            vms: self
                .vms
                .into_iter()
                .map(|(number, vm)| (number, vm.finish()))
                .collect(),
            vm_of_thread: self
                .served
                .into_iter()
                .map(|(thread, (vm, _))| (thread, vm))
                .collect(),
            ipis: self.ipis,
            sight: self.sight,
            lost_events: self.survey.lost_events,
            late_events: self.late_events,
        }
    }

    fn forget(&mut self) {
        for vm in self.vms.values_mut() {
            vm.forget();
        }
        self.ipis.forget();
    }

    /// The thread serves that vCPU; what it served before has no thread now, so nothing is known of it.
    fn serve(&mut self, thread: u32, vm: u32, vcpu: u16) {
        let before = self.served.insert(thread, (vm, vcpu));
        if let Some((old_vm, old_vcpu)) = before.filter(|&before| before != (vm, vcpu)) {
            if let Some(old) = self.vms.get_mut(&old_vm) {
                old.forget_vcpu(old_vcpu);
            }
        }
    }
}

/// The whole analysis of events in memory, in order of time.
pub fn analyse(events: &[Event], sight: Sight) -> Exits {
    let mut analysis = ExitAnalysis::new(Survey::of(events), sight);
    for event in events {
        analysis.add(event);
    }
    analysis.finish()
}
