// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording that has ended, as rows.

use std::{path::Path, time::Duration};

use unspin_events::KIND_NAMES;
use unspin_recording::{Ended, Manifest, Summary, facts::VmFacts};
use unspin_report::row;

use super::Streamed;

row! {
    "recording", ["record"];
    /// A recording that has ended.
    pub struct RecordingRow {
        /// Its folder.
        pub folder: String = ("folder", Text),
        /// How it ended: `finished`, `interrupted`, `disk_full` or `failed`.
        #[schemars(with = "String")]
        pub ended: Ended = ("ended", Text),
        /// For how long it was recorded; s.
        pub seconds: f64 = ("seconds", Ratio),
        /// Events in it.
        pub events: u64 = ("events", Count),
        /// Events per second.
        pub events_per_second: f64 = ("events/s", Count),
        /// Events that the kernel's ring had no room for.
        pub lost_events: u64 = ("lost", Count),
        /// Events that came and could not be written.
        pub unwritten_events: u64 = ("not written", Count),
        /// Runs of the programs that did not take place; null: the kernel did not tell.
        pub missed_runs: Option<u64> = ("missed runs", Count),
        /// Exits that could not be counted for want of room for their thread; null: the kernel did not tell.
        pub unobserved_exits: Option<u64> = ("unobserved exits", Count),
        /// VMs that were seen.
        pub vms: usize = ("VMs", Count),
        /// Threads whose names are known.
        pub tasks: usize = ("tasks named", Count),
        /// Size of its segments; bytes.
        pub bytes: u64 = ("bytes", Count),
    }
}

row! {
    "kind", ["record"];
    /// Events of one kind, of those that were asked for or came.
    pub struct KindRow {
        /// The kind.
        pub kind: &'static str = ("kind", Text),
        /// Events of it.
        pub events: u64 = ("events", Count),
        /// Events of it that were lost.
        pub lost_events: u64 = ("lost", Count),
    }
}

row! {
    "vm", ["record"];
    /// A VM that was seen.
    pub struct VmRow {
        /// Its number in the recording.
        pub vm: u32 = ("VM", Count),
        /// What its manager calls it, of KubeVirt with the namespace; null: it has no name.
        pub name: Option<String> = ("name", Text),
        /// Who manages it: libvirt, nova, kubevirt, proxmox, qemu, cloud_hypervisor, firecracker, unspin or other.
        pub kind: &'static str = ("by", Text),
        /// Its UUID.
        pub uuid: Option<String>,
        /// Its id there beside name and UUID: Proxmox's number, Nova's name of the instance, Cloud Hypervisor's socket, Firecracker's id.
        pub id: Option<String> = ("id", Text),
        /// UID of the Kubernetes pod in which it runs.
        pub pod_uid: Option<String>,
        /// Why it has no name, or not the one that its command line says.
        pub name_problem: Option<String>,
        /// Its process.
        pub process: Option<String> = ("process", Text),
        /// That process's command.
        pub comm: Option<String> = ("command", Text),
        /// vCPUs that were seen.
        pub vcpus: usize = ("vCPUs", Count),
        /// Time from its first event to its last; ns.
        pub seen_ns: Option<u64> = ("seen for", Nanoseconds),
    }
}

/// The recording, which took so long.
pub fn recording(folder: &Path, summary: &Summary, took: Duration) -> RecordingRow {
    let manifest = &summary.manifest;
    let facts = &manifest.facts;
    let lost = facts
        .lost
        .values()
        .fold(0u64, |sum, &lost| sum.saturating_add(lost));
    let seconds = took.as_secs_f64();
    RecordingRow {
        folder: folder.display().to_string(),
        ended: manifest.ended,
        seconds,
        events: manifest.events,
        events_per_second: manifest.events as f64 / seconds,
        lost_events: lost,
        unwritten_events: manifest.unwritten_events,
        missed_runs: facts.missed_runs,
        unobserved_exits: facts.unobserved_exits,
        vms: facts.vms.len(),
        tasks: facts.tasks.len(),
        bytes: summary.bytes,
    }
}

/// Every kind that was asked for or came.
pub fn kinds(streamed: &Streamed, manifest: &Manifest) -> Vec<KindRow> {
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

/// A VM.
pub fn vm(vm: &VmFacts) -> VmRow {
    let first = vm.vcpus.iter().map(|vcpu| vcpu.first_ns).min();
    let last = vm.vcpus.iter().map(|vcpu| vcpu.last_ns).max();
    let mut numbers: Vec<u16> = vm.vcpus.iter().map(|vcpu| vcpu.vcpu).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let identity = &vm.identity;
    VmRow {
        vm: vm.vm,
        name: identity.called(),
        kind: identity.kind.word(),
        uuid: identity.uuid.clone(),
        id: identity.id.clone(),
        pod_uid: identity.pod_uid.clone(),
        name_problem: identity.name_problem.clone(),
        process: vm.process.map(|process| process.to_string()),
        comm: vm.comm.clone(),
        vcpus: numbers.len(),
        seen_ns: first.zip(last).map(|(first, last)| last - first),
    }
}
