// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin record` says when it has ended.

use std::{path::Path, time::Duration};

use unspin_agent::record::Streamed;
use unspin_events::KIND_NAMES;
use unspin_recording::{Manifest, facts::VmFacts};
use unspin_report::{Cell, Column, Document, Table, Unit};

const RECORDING: &[Column] = &[
    Column::new("folder", "folder", Unit::Text),
    Column::new("ended", "ended", Unit::Text),
    Column::new("seconds", "seconds", Unit::Ratio),
    Column::new("events", "events", Unit::Count),
    Column::new("events_per_second", "events/s", Unit::Count),
    Column::new("lost_events", "lost", Unit::Count),
    Column::new("unwritten_events", "not written", Unit::Count),
    Column::new("missed_runs", "missed runs", Unit::Count),
    Column::new("unobserved_exits", "unobserved exits", Unit::Count),
    Column::new("vms", "VMs", Unit::Count),
    Column::new("tasks", "tasks named", Unit::Count),
    Column::new("bytes", "bytes", Unit::Count),
];

const KINDS: &[Column] = &[
    Column::new("kind", "kind", Unit::Text),
    Column::new("events", "events", Unit::Count),
    Column::new("lost_events", "lost", Unit::Count),
];

const VMS: &[Column] = &[
    Column::new("vm", "VM", Unit::Count),
    Column::new("name", "name", Unit::Text),
    Column::new("process", "process", Unit::Text),
    Column::new("comm", "command", Unit::Text),
    Column::new("vcpus", "vCPUs", Unit::Count),
    Column::new("seen_ns", "seen for", Unit::Nanoseconds),
];

/// Adds the recording, its events by kind, and its VMs.
pub fn add(document: &mut Document, folder: &Path, streamed: &Streamed, took: Duration) {
    let Ok(summary) = &streamed.summary else {
        return; // the error is told, and nothing is known to stand on the disk
    };
    let manifest = &summary.manifest;
    document.table(recording(folder, manifest, summary.bytes, took));
    document.table(kinds(streamed, manifest));
    document.table(vms(&manifest.facts.vms));
    if let Some(blind) = &manifest.facts.ipi.blind {
        document.note(format!("inter-processor interrupts: blind, {blind}"));
    }
    if let Some(error) = &summary.merge_error {
        document.note(format!("segments were not merged: {error}"));
    }
}

fn recording(folder: &Path, manifest: &Manifest, bytes: u64, took: Duration) -> Table {
    let facts = &manifest.facts;
    let lost = facts
        .lost
        .values()
        .fold(0u64, |sum, &lost| sum.saturating_add(lost));
    let seconds = took.as_secs_f64();
    let ended = serde_json::to_value(manifest.ended).unwrap_or_default();
    let mut table = Table::new("recording", "", RECORDING);
    table.push(vec![
        folder.display().to_string().into(),
        ended.as_str().unwrap_or("unknown").into(),
        seconds.into(),
        manifest.events.into(),
        (manifest.events as f64 / seconds).into(),
        lost.into(),
        manifest.unwritten_events.into(),
        facts.missed_runs.into(),
        facts.unobserved_exits.into(),
        facts.vms.len().into(),
        facts.tasks.len().into(),
        bytes.into(),
    ]);
    table
}

/// Every kind that was asked for or came.
fn kinds(streamed: &Streamed, manifest: &Manifest) -> Table {
    let mut table = Table::new("kind", "Events by kind", KINDS);
    for (name, events) in KIND_NAMES.iter().zip(streamed.kinds) {
        let lost = manifest.facts.lost.get(*name).copied().unwrap_or(0);
        let asked = manifest.facts.kinds.iter().any(|kind| kind == name);
        if asked || events > 0 || lost > 0 {
            table.push(vec![(*name).into(), events.into(), lost.into()]);
        }
    }
    table
}

fn vms(vms: &[VmFacts]) -> Table {
    let mut table = Table::new("vm", "VMs", VMS);
    for vm in vms {
        let first = vm.vcpus.iter().map(|vcpu| vcpu.first_ns).min();
        let last = vm.vcpus.iter().map(|vcpu| vcpu.last_ns).max();
        let mut numbers: Vec<u16> = vm.vcpus.iter().map(|vcpu| vcpu.vcpu).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let process = vm.process.map(|process| process.to_string());
        table.push(vec![
            vm.vm.into(),
            text(&vm.name),
            process.into(),
            text(&vm.comm),
            numbers.len().into(),
            first.zip(last).map(|(first, last)| last - first).into(),
        ]);
    }
    table
}

fn text(text: &Option<String>) -> Cell {
    text.clone().into()
}
