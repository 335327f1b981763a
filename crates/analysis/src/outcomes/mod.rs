// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pause-loop exits were for, what became of them and what they cost, of workloads beside each other: VEE'21's Figures 3 to
//! 6, APPLE's inefficiency, and the IPIs.

pub mod cost;
pub mod figures;
pub mod reasons;

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use unspin_events::{Event, What};
use unspin_recording::Recorded;

use crate::{
    ExitAnalysis, Exits, Sight, SourceError, Survey, VmExits, WindowUnit, source::read_log,
};

/// What is known of an input before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// What windows count, where the input does not say so itself.
    pub window_unit: WindowUnit,
    /// Frequency of the TSC, kHz, if known: for windows of TSC cycles.
    pub tsc_khz: Option<u64>,
    /// Whether the guests are Linux: their vectors say which IPIs are waited for.
    pub linux_vectors: bool,
}

impl Assumed {
    /// What windows count: by the module that was loaded, or as assumed.
    pub fn window_unit(&self, module: Option<&str>) -> WindowUnit {
        match (module, self.window_unit) {
            (Some("kvm_amd"), _) => WindowUnit::Pauses,
            (_, WindowUnit::Pauses) => WindowUnit::Pauses,
            (Some("kvm_intel"), _) | (_, WindowUnit::Cycles { .. }) => WindowUnit::Cycles {
                tsc_khz: self.tsc_khz,
            },
            _ => WindowUnit::Unknown,
        }
    }
}

/// One run, analysed.
pub struct Workload {
    /// What tables call it.
    pub name: String,
    /// The machine that was observed, in one line.
    pub machine: String,
    /// What was found.
    pub exits: Exits,
    /// What people call the VMs; "vm7" for those that are not in it.
    pub names: BTreeMap<u32, String>,
    /// What the counters of KVM's programs say, which events are not needed for, by VM; empty for what is read from a file.
    pub counted: BTreeMap<u32, Counted>,
    /// Share of CPU time that the guest itself says it spun, by VM, percent.
    pub guest_spin_percent: BTreeMap<u32, f64>,
    /// What is missing or damaged, in words.
    pub complaints: Vec<String>,
}

/// Counters of one VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Pause-loop exits.
    pub exits: u64,
    /// yield_to() above 0.
    pub boosted: u64,
}

impl Workload {
    /// Reads and analyses a recording's folder, or the file of an event log.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn read(path: &Path, assumed: &Assumed) -> Result<Workload, SourceError> {
        match path.is_dir() {
            true => recording(path, assumed),
            false => log(path, assumed),
        }
    }

    /// The share of CPU time that each guest spent spinning, by its own account: from what `vm run --json` printed of this run.
    ///
    /// # Errors
    /// When the file is none of that.
    pub fn add_guests(&mut self, path: &Path) -> Result<(), SourceError> {
        let text = fs::read_to_string(path).map_err(SourceError::file(path))?;
        let report: Value = serde_json::from_str(&text).map_err(SourceError::file(path))?;
        let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
        for row in rows.iter().filter(|row| row["table"] == "vm") {
            let vm = vm_of(rows, &row["vm"], &self.exits);
            if let Some((vm, share)) = vm.zip(row["spin_share_percent"].as_f64()) {
                self.guest_spin_percent.insert(vm, share);
            }
        }
        Ok(())
    }

    /// What people call that VM.
    pub fn vm_name(&self, number: u32) -> String {
        let name = self.names.get(&number).cloned();
        name.unwrap_or_else(|| format!("vm{number}"))
    }

    /// What of it cannot be relied on, and why, in words.
    pub fn notes(&self) -> Vec<String> {
        let name = &self.name;
        let complaints = self.complaints.iter();
        let mut lines: Vec<String> = complaints.map(|line| format!("{name}: {line}")).collect();
        if self.exits.sight.ipi_blind {
            lines.push(format!(
                "{name}: IPIs were not seen; what depends on them is unknown."
            ));
        }
        let lost = match self.exits.lost_events {
            Some(0) => None,
            Some(events) => Some(format!("{events} events")),
            None => Some("pieces of the recording".to_owned()),
        };
        if let Some(what) = lost {
            lines.push(format!(
                "{name}: {what} were lost; exits up to a second before a loss are unknown."
            ));
        }
        if self.exits.late_events > 0 {
            lines.push(format!(
                "{name}: {} events were out of order and left out.",
                self.exits.late_events
            ));
        }
        lines
    }

    /// The VMs with their numbers and the words for them.
    pub(crate) fn vms(&self) -> impl Iterator<Item = (u32, String, &VmExits)> {
        let vms = self.exits.vms.iter();
        vms.map(|(&number, vm)| (number, self.vm_name(number), vm))
    }
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

/// The complaint about events of which nobody knows where they are missing.
pub fn lost_somewhere(lost: u64) -> Option<String> {
    (lost > 0).then(|| format!("{lost} events were lost, nobody knows where: all is unknown"))
}

fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    stem.to_string_lossy().into_owned()
}

/// Twice through the events: what is missing must be known before the rest means anything.
fn recording(folder: &Path, assumed: &Assumed) -> Result<Workload, SourceError> {
    let recorded = Recorded::open_readable(folder)?;
    let facts = recorded.facts();
    let mut survey = Survey::default();
    let mut events = recorded.events();
    for event in &mut events {
        survey.add(&event);
    }
    let mut complaints = recorded.problems().to_vec();
    complaints.extend(events.problems());
    let sight = Sight {
        ipi_blind: facts.ipi.blind.is_some() || !facts.kinds.iter().any(|kind| kind == "ipi"),
        window_unit: assumed.window_unit(facts.kvm.module.as_deref()),
        linux_vectors: assumed.linux_vectors,
    };
    let mut analysis = ExitAnalysis::new(survey, sight);
    for event in recorded.events() {
        analysis.add(&event);
    }
    complaints.extend(facts.ipi.blind.clone());
    let names = facts.vms.iter().map(|vm| (vm.vm, facts.vm_name(vm.vm)));
    Ok(Workload {
        name: name_of(folder),
        machine: facts.machine.clone(),
        exits: analysis.finish(),
        names: names.collect(),
        counted: BTreeMap::new(),
        guest_spin_percent: BTreeMap::new(),
        complaints,
    })
}

fn log(path: &Path, assumed: &Assumed) -> Result<Workload, SourceError> {
    let read = read_log(path)?;
    let events = read.log.events();
    let metadata = read.log.metadata();
    let sight = Sight {
        // A log does not say whether IPIs were looked for: without any in it, none was seen.
        ipi_blind: !events
            .iter()
            .any(|event| matches!(event.what, What::Ipi { .. })),
        window_unit: assumed.window_unit(None),
        linux_vectors: assumed.linux_vectors,
    };
    let mut complaints: Vec<String> = read.truncated.iter().map(ToString::to_string).collect();
    complaints.extend(lost_somewhere(metadata.lost_events));
    Ok(Workload {
        name: name_of(path),
        machine: metadata.machine.clone(),
        exits: analyse_events(events, sight, metadata.lost_events),
        names: BTreeMap::new(),
        counted: BTreeMap::new(),
        guest_spin_percent: BTreeMap::new(),
        complaints,
    })
}

/// The number that events have for the VM that a report of `vm run` calls so: their threads are the same.
fn vm_of(rows: &[Value], name: &Value, exits: &Exits) -> Option<u32> {
    let mut vcpus = rows.iter().filter(|row| row["table"] == "vcpu");
    let vcpu = vcpus.find(|row| row["vm"] == *name)?;
    let thread = u32::try_from(vcpu["thread"].as_u64()?).ok()?;
    exits.vm_of_thread.get(&thread).copied()
}

/// `part` of `all` in percent; `None` of nothing.
pub(crate) fn percent(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 * 100.0 / all as f64)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
