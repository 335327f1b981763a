// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin outcomes`: what pause-loop exits were for, and what became of them.

pub(crate) mod args;
pub(crate) mod cost;
pub(crate) mod live;
pub(crate) mod reasons;
pub(crate) mod run;
pub(crate) mod tables;

use std::collections::BTreeMap;

use args::{OutcomesArguments, WindowWord};
use unspin_analysis::{ExitAnalysis, Exits, Sight, Survey, Symbols, VmExits, WindowUnit};
use unspin_events::Event;

pub use run::run;

/// One recording, analysed.
pub struct Analysed {
    /// What tables call it.
    pub name: String,
    /// The machine that was observed, in one line.
    pub machine: String,
    /// What was found.
    pub exits: Exits,
    /// What people call the VMs.
    pub names: BTreeMap<u32, String>,
    /// What the programs' counters say; empty for what is read from a file.
    pub counted: BTreeMap<u32, Counted>,
    /// What is missing or damaged, for people.
    pub complaints: Vec<String>,
}

/// Events in memory of which `lost` are missing, nobody knows where: then nothing is known.
pub fn analyse_events(events: &[Event], sight: Sight, lost: u64) -> Exits {
    let mut survey = Survey::of(events);
    if lost > 0 {
        survey.all_is_lost();
    }
    let mut analysis = ExitAnalysis::new(survey, sight);
    for event in events {
        analysis.add(event);
    }
    analysis.finish()
}

pub fn lost_somewhere(lost: u64) -> Vec<String> {
    match lost {
        0 => Vec::new(),
        _ => vec![format!(
            "{lost} events were lost, nobody knows where: all is unknown"
        )],
    }
}

/// What windows count: by the module that was loaded, or as the command line says.
pub fn window_unit(arguments: &OutcomesArguments, module: Option<&str>) -> WindowUnit {
    let tsc_khz = arguments.tsc_khz;
    match (module, arguments.window_unit) {
        (Some("kvm_amd"), _) | (_, Some(WindowWord::Pauses)) => WindowUnit::Pauses,
        (Some("kvm_intel"), _) | (_, Some(WindowWord::Cycles)) => WindowUnit::Cycles { tsc_khz },
        _ => WindowUnit::Unknown,
    }
}

/// One recording, and what is known beside it.
pub struct Workload<'a> {
    /// What tables call it.
    pub name: String,
    /// What was found.
    pub exits: &'a Exits,
    /// The guests' symbols, if given.
    pub symbols: Option<&'a Symbols>,
    /// What people call the VMs; "vm7" for those that are not in it.
    pub names: &'a BTreeMap<u32, String>,
    /// By VM, what the counters of KVM's programs say, which events are not needed for.
    pub counted: &'a BTreeMap<u32, Counted>,
}

impl Workload<'_> {
    /// What people call that VM.
    pub fn vm_name(&self, number: u32) -> String {
        let name = self.names.get(&number).cloned();
        name.unwrap_or_else(|| format!("vm{number}"))
    }
}

/// Counters of one VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Pause-loop exits.
    pub exits: u64,
    /// yield_to() above 0.
    pub boosted: u64,
}

/// `part` of `all` in percent; `None` of nothing.
pub fn percent(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 * 100.0 / all as f64)
}

/// The workload's VMs with the words for them.
pub fn vms<'a>(workload: &Workload<'a>) -> impl Iterator<Item = (String, String, &'a VmExits)> {
    let vms = workload.exits.vms.iter();
    vms.map(|(&number, vm)| (workload.name.clone(), workload.vm_name(number), vm))
}
