// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin outcomes`: what every pause-loop exit was for, what became of it, and what it cost.

use std::{collections::BTreeMap, fs, io::BufReader, path::Path};

use anyhow::{Context, anyhow};
use serde_json::Value;
use unspin_analysis::{ExitAnalysis, Exits, Sight, Survey, Symbols};
use unspin_events::{What, log::EventLog};
use unspin_recording::Recorded;
use unspin_report::Document;

use crate::{
    commands::outcomes::{
        Analysed, Workload, analyse_events,
        args::{OutcomesArguments, is_scenario},
        cost as exit_cost_tables,
        cost::GuestSpinning,
        live::run_scenario,
        lost_somewhere, tables as outcome_tables, window_unit,
    },
    terminal::{failure::Failure, output},
};

/// Reads the recordings and prints the tables.
pub fn run(arguments: &OutcomesArguments) -> Result<(), Failure> {
    let symbols = arguments.symbols.as_deref().map(read_symbols).transpose()?;
    let mut analysed = Vec::new();
    let mut guest = GuestSpinning::new();
    for path in &arguments.recordings {
        analysed.push(analyse_input(path, arguments, &mut guest)?);
    }
    guest.extend(guest_spinning(&arguments.guests, &analysed)?);
    let workloads: Vec<Workload<'_>> = analysed
        .iter()
        .map(|found| Workload {
            name: found.name.clone(),
            exits: &found.exits,
            symbols: symbols.as_ref(),
            names: &found.names,
            counted: &found.counted,
        })
        .collect();
    let mut machines: Vec<&str> = analysed.iter().map(|found| &*found.machine).collect();
    machines.dedup();
    let mut document = Document::new("outcomes", machines.join("; "));
    for table in outcome_tables::tables(&workloads) {
        document.table(table);
    }
    for table in exit_cost_tables::tables(&workloads, &guest) {
        document.table(table);
    }
    for found in &analysed {
        for line in notes(found) {
            document.note(line);
        }
    }
    output::print(&document, arguments.output)?;
    Ok(())
}

/// What of a recording cannot be relied on, and why. Each also shows in the tables.
fn notes(found: &Analysed) -> Vec<String> {
    let name = &found.name;
    let complaints = found.complaints.iter();
    let mut lines: Vec<String> = complaints.map(|line| format!("{name}: {line}")).collect();
    if found.exits.sight.ipi_blind {
        lines.push(format!(
            "{name}: IPIs were not seen; what depends on them is unknown."
        ));
    }
    let lost = match found.exits.lost_events {
        Some(0) => None,
        Some(events) => Some(format!("{events} events")),
        None => Some("pieces of the recording".to_owned()),
    };
    if let Some(what) = lost {
        lines.push(format!(
            "{name}: {what} were lost; exits up to a second before a loss are unknown."
        ));
    }
    if found.exits.late_events > 0 {
        lines.push(format!(
            "{name}: {} events were out of order and left out.",
            found.exits.late_events
        ));
    }
    lines
}

/// A guest's symbols from a file.
pub fn read_symbols(path: &Path) -> Result<Symbols, Failure> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let symbols = Symbols::parse(&text).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    Ok(symbols)
}

fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    stem.to_string_lossy().into_owned()
}

fn analyse_input(
    path: &Path,
    arguments: &OutcomesArguments,
    guest: &mut GuestSpinning,
) -> Result<Analysed, Failure> {
    if is_scenario(path) {
        run_scenario(path, arguments, guest)
    } else if path.is_dir() {
        analyse_recording(path, arguments)
    } else {
        analyse_log(path, arguments)
    }
}

/// Twice through the events: what is missing must be known before the rest means anything.
fn analyse_recording(folder: &Path, arguments: &OutcomesArguments) -> Result<Analysed, Failure> {
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
        window_unit: window_unit(arguments, facts.kvm.module.as_deref()),
        linux_vectors: arguments.linux,
    };
    let mut analysis = ExitAnalysis::new(survey, sight);
    for event in recorded.events() {
        analysis.add(&event);
    }
    complaints.extend(facts.ipi.blind.clone());
    Ok(Analysed {
        name: name_of(folder),
        machine: facts.machine.clone(),
        exits: analysis.finish(),
        names: facts
            .vms
            .iter()
            .map(|vm| (vm.vm, facts.vm_name(vm.vm)))
            .collect(),
        counted: BTreeMap::new(),
        complaints,
    })
}

fn analyse_log(path: &Path, arguments: &OutcomesArguments) -> Result<Analysed, Failure> {
    let failed = || path.display().to_string();
    let file = fs::File::open(path).with_context(failed)?;
    let read = EventLog::read(&mut BufReader::new(file)).with_context(failed)?;
    let events = read.log.events();
    let metadata = read.log.metadata();
    let sight = Sight {
        // A log does not say whether IPIs were looked for: without any in it, none was seen.
        ipi_blind: !events
            .iter()
            .any(|event| matches!(event.what, What::Ipi { .. })),
        window_unit: window_unit(arguments, None),
        linux_vectors: arguments.linux,
    };
    let mut complaints: Vec<String> = read.truncated.iter().map(ToString::to_string).collect();
    complaints.extend(lost_somewhere(metadata.lost_events));
    Ok(Analysed {
        name: name_of(path),
        machine: metadata.machine.clone(),
        exits: analyse_events(events, sight, metadata.lost_events),
        names: BTreeMap::new(),
        counted: BTreeMap::new(),
        complaints,
    })
}

/// The share of CPU time that each guest spent spinning, by its own account.
fn guest_spinning(
    files: &[std::path::PathBuf],
    analysed: &[Analysed],
) -> Result<GuestSpinning, Failure> {
    if files.len() > analysed.len() {
        let message = "there are more --guest files than recordings".to_owned();
        return Err(Failure::Usage(message));
    }
    let mut spinning = GuestSpinning::new();
    for (path, found) in files.iter().zip(analysed) {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let report: Value =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
        for row in rows.iter().filter(|row| row["table"] == "vm") {
            let vm = vm_in_recording(rows, &row["vm"], &found.exits);
            if let Some((vm, share)) = vm.zip(row["spin_share_percent"].as_f64()) {
                spinning.insert((found.name.clone(), vm), share);
            }
        }
    }
    Ok(spinning)
}

/// The number that events have for the VM that a report of `vm run` calls so: their threads are the same.
fn vm_in_recording(rows: &[Value], name: &Value, exits: &Exits) -> Option<u32> {
    let mut vcpus = rows.iter().filter(|row| row["table"] == "vcpu");
    let vcpu = vcpus.find(|row| row["vm"] == *name)?;
    let thread = u32::try_from(vcpu["thread"].as_u64()?).ok()?;
    exits.vm_of_thread.get(&thread).copied()
}
