// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin record` says when it has ended.

use std::{path::Path, time::Duration};

use unspin_agent::record::Streamed;
use unspin_events::KIND_NAMES;
use unspin_recording::{Manifest, facts::VmFacts};
use unspin_report::{Document, Table, row};

row! {
    "recording", ["record"];
    /// A recording that has ended.
    struct RecordingRow {
        /// Its folder.
        folder: String = ("folder", Text),
        /// How it ended: `finished`, `interrupted`, `disk_full` or `failed`.
        ended: String = ("ended", Text),
        /// For how long it was recorded; s.
        seconds: f64 = ("seconds", Ratio),
        /// Events in it.
        events: u64 = ("events", Count),
        /// Events per second.
        events_per_second: f64 = ("events/s", Count),
        /// Events that the kernel's ring had no room for.
        lost_events: u64 = ("lost", Count),
        /// Events that came and could not be written.
        unwritten_events: u64 = ("not written", Count),
        /// Runs of the programs that did not take place; null: the kernel did not tell.
        missed_runs: Option<u64> = ("missed runs", Count),
        /// Exits that could not be counted for want of room for their thread; null: the kernel did not tell.
        unobserved_exits: Option<u64> = ("unobserved exits", Count),
        /// VMs that were seen.
        vms: usize = ("VMs", Count),
        /// Threads whose names are known.
        tasks: usize = ("tasks named", Count),
        /// Size of its segments; bytes.
        bytes: u64 = ("bytes", Count),
    }
}

row! {
    "kind", ["record"];
    /// Events of one kind, of those that were asked for or came.
    struct KindRow {
        /// The kind.
        kind: &'static str = ("kind", Text),
        /// Events of it.
        events: u64 = ("events", Count),
        /// Events of it that were lost.
        lost_events: u64 = ("lost", Count),
    }
}

row! {
    "vm", ["record"];
    /// A VM that was seen.
    struct VmRow {
        /// Its number in the recording.
        vm: u32 = ("VM", Count),
        /// Its name, where its VMM says one.
        name: Option<String> = ("name", Text),
        /// Its process.
        process: Option<String> = ("process", Text),
        /// That process's command.
        comm: Option<String> = ("command", Text),
        /// vCPUs that were seen.
        vcpus: usize = ("vCPUs", Count),
        /// Time from its first event to its last; ns.
        seen_ns: Option<u64> = ("seen for", Nanoseconds),
    }
}

/// Adds the recording, its events by kind, and its VMs.
pub fn add(document: &mut Document, folder: &Path, streamed: &Streamed, took: Duration) {
    let Ok(summary) = &streamed.summary else {
        return; // the error is told, and nothing is known to stand on the disk
    };
    let manifest = &summary.manifest;
    let recording = recording(folder, manifest, summary.bytes, took);
    document.table(Table::of("", [recording]));
    document.table(Table::of("Events by kind", kinds(streamed, manifest)));
    document.table(Table::of("VMs", manifest.facts.vms.iter().map(vm)));
    if let Some(blind) = &manifest.facts.ipi.blind {
        document.note(format!("inter-processor interrupts: blind, {blind}"));
    }
    if let Some(error) = &summary.merge_error {
        document.note(format!("segments were not merged: {error}"));
    }
}

fn recording(folder: &Path, manifest: &Manifest, bytes: u64, took: Duration) -> RecordingRow {
    let facts = &manifest.facts;
    let lost = facts
        .lost
        .values()
        .fold(0u64, |sum, &lost| sum.saturating_add(lost));
    let seconds = took.as_secs_f64();
    let ended = serde_json::to_value(manifest.ended).unwrap_or_default();
    RecordingRow {
        folder: folder.display().to_string(),
        ended: ended.as_str().unwrap_or("unknown").into(),
        seconds,
        events: manifest.events,
        events_per_second: manifest.events as f64 / seconds,
        lost_events: lost,
        unwritten_events: manifest.unwritten_events,
        missed_runs: facts.missed_runs,
        unobserved_exits: facts.unobserved_exits,
        vms: facts.vms.len(),
        tasks: facts.tasks.len(),
        bytes,
    }
}

/// Every kind that was asked for or came.
fn kinds(streamed: &Streamed, manifest: &Manifest) -> Vec<KindRow> {
    let mut rows = Vec::new();
    for (kind, events) in KIND_NAMES.into_iter().zip(streamed.kinds) {
        let lost_events = manifest.facts.lost.get(kind).copied().unwrap_or(0);
        let asked = manifest.facts.kinds.iter().any(|asked| asked == kind);
        if asked || events > 0 || lost_events > 0 {
            rows.push(KindRow {
                kind,
                events,
                lost_events,
            });
        }
    }
    rows
}

fn vm(vm: &VmFacts) -> VmRow {
    let first = vm.vcpus.iter().map(|vcpu| vcpu.first_ns).min();
    let last = vm.vcpus.iter().map(|vcpu| vcpu.last_ns).max();
    let mut numbers: Vec<u16> = vm.vcpus.iter().map(|vcpu| vcpu.vcpu).collect();
    numbers.sort_unstable();
    numbers.dedup();
    VmRow {
        vm: vm.vm,
        name: vm.name.clone(),
        process: vm.process.map(|process| process.to_string()),
        comm: vm.comm.clone(),
        vcpus: numbers.len(),
        seen_ns: first.zip(last).map(|(first, last)| last - first),
    }
}
