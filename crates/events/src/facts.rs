// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an analysis is told beside the events: the machine, KVM's parameters, who the VMs and tasks are, what was lost.
//!
//! `None` is "not known" everywhere; it is never replaced by 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::vm_identity::{NAME_LENGTH_MAX, VmIdentity, VmKind, printable};

/// Side facts of a stream of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Commit of the program that observed.
    pub commit: String,
    /// Machine, in one line.
    pub machine: String,
    /// The same moment on both clocks: where the observation began.
    pub begin: BeginTime,
    /// `CLOCK_MONOTONIC` at the end; `None` while it goes on, or when it never ended in order.
    pub end_monotonic_ns: Option<u64>,
    /// Parameters of KVM's modules.
    pub kvm: KvmFacts,
    /// Whether inter-processor interrupts were seen.
    pub ipi: IpiSight,
    /// Kinds of events that were asked for, by their words in `KIND_NAMES`.
    pub kinds: Vec<String>,
    /// The scenario that ran, when this program ran the VMs itself.
    pub scenario: Option<ScenarioFacts>,
    /// VMs in order of appearance.
    pub vms: Vec<VmFacts>,
    /// Threads that ran before or after a vCPU, every incarnation of a reused id, in order of `first_seen_ns`.
    pub tasks: Vec<TaskFacts>,
    /// Incarnations of tasks and vCPU threads that were left out because their table was full.
    pub left_out: u64,
    /// Runs of programs that did not take place, because one was under way on that CPU: events that nobody counted by
    /// kind. `None` until the end.
    pub missed_runs: Option<u64>,
    /// Exits of vCPU threads that found no slot; none of their events is there. `None` until the end.
    pub unobserved_exits: Option<u64>,
    /// Events lost, by the word of their kind; kinds that lost none are absent.
    pub lost: BTreeMap<String, u64>,
}

/// One moment on two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginTime {
    /// `CLOCK_MONOTONIC`, the clock of events.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`, since 1970.
    pub unix_ns: u64,
}

/// KVM's modules on the observed host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KvmFacts {
    /// `kvm_amd` or `kvm_intel`; `None`: neither is loaded, or built in without parameters to see.
    pub module: Option<String>,
    /// Parameter of that module or of `kvm`, as the kernel spells name and value; `None`: it cannot be read.
    pub parameters: BTreeMap<String, Option<String>>,
}

impl KvmFacts {
    /// A parameter as a number; `None` when it is not known or no number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.parameters.get(name)?.as_ref()?.trim().parse().ok()
    }

    /// The window and gap that KVM starts a vCPU with: `pause_filter_count` and `pause_filter_thresh` (PAUSEs) of
    /// kvm_amd, `ple_window` and `ple_gap` (TSC cycles) of kvm_intel.
    pub fn window_and_gap(&self) -> (Option<u64>, Option<u64>) {
        match self.module.as_deref() {
            Some("kvm_amd") => (
                self.number("pause_filter_count"),
                self.number("pause_filter_thresh"),
            ),
            Some("kvm_intel") => (self.number("ple_window"), self.number("ple_gap")),
            _ => (None, None),
        }
    }
}

/// Whether the host sees inter-processor interrupts being sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpiSight {
    /// Why it does not, or not all of them; `None`: it sees every one.
    pub blind: Option<String>,
}

/// A scenario, by which a run can be repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioFacts {
    /// Name of its file without the ending.
    pub name: String,
    /// SHA-256 of its canonical form, in hex.
    pub sha256: String,
    /// Seed of the run.
    pub seed: u64,
}

/// One VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VmFacts {
    /// Number in the events.
    pub vm: u32,
    /// Process of its VMM; `None`: it had ended before anybody looked.
    pub process: Option<u32>,
    /// When that process started, clock ticks since boot (field 22 of /proc/PID/stat): tells a reused id.
    pub process_start_ticks: Option<u64>,
    /// Name of the process.
    pub comm: Option<String>,
    /// What its manager calls it, and its ids.
    #[serde(flatten)]
    pub identity: VmIdentity,
    /// Ruling 35: {nopvspin, PV spinlocks} x {PV TLB flush} x {PV IPI, PV sched-yield} x {async page faults}, in the words
    /// of `unspin vm linux`; what QEMU's command line asks for. `None`: it does not tell.
    pub guest_features: Option<String>,
    /// Threads that served its vCPUs.
    pub vcpus: Vec<VcpuFacts>,
}

/// One thread that served a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpuFacts {
    /// KVM's number of the vCPU.
    pub vcpu: u16,
    /// Thread id.
    pub thread: u32,
    /// Time of its first event.
    pub first_ns: u64,
    /// Time of its last event.
    pub last_ns: u64,
}

/// One incarnation of a thread id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFacts {
    /// Thread id.
    pub thread: u32,
    /// Its process.
    pub process: Option<u32>,
    /// Name of the thread.
    pub comm: String,
    /// From this moment on (`CLOCK_MONOTONIC`) the id means this one.
    pub first_seen_ns: u64,
    /// When it started, clock ticks since boot.
    pub start_ticks: Option<u64>,
}

impl Facts {
    /// The task that the thread id meant at that time: the latest incarnation first seen no later, or, before all of
    /// them, the first (its name is read a moment after its first event).
    pub fn task_at(&self, thread: u32, time_ns: u64) -> Option<&TaskFacts> {
        let mut incarnations = self.tasks.iter().filter(|task| task.thread == thread);
        let first = incarnations.next()?;
        Some(
            incarnations
                .take_while(|task| task.first_seen_ns <= time_ns)
                .last()
                .unwrap_or(first),
        )
    }

    /// The VM of that number.
    pub fn vm(&self, number: u32) -> Option<&VmFacts> {
        self.vms.iter().find(|vm| vm.vm == number)
    }

    /// What people call the VM: its manager's name for it; without one `firecracker (4321)`, program and process; of several VMs
    /// of one process, and of one whose process is not known, `vm7`. Of VMs that are called the same each has its process, too.
    /// Without control characters and short, whoever wrote the facts.
    pub fn vm_name(&self, number: u32) -> String {
        let by_number = || format!("vm{number}");
        let Some(vm) = self.vm(number) else {
            return by_number();
        };
        let others = || self.vms.iter().filter(|other| other.vm != number);
        if let Some(called) = vm.identity.called() {
            if !others().any(|other| other.identity.called().as_ref() == Some(&called)) {
                return called;
            }
            let alone = vm.process.filter(|_| {
                let same = |other: &VmFacts| other.process == vm.process;
                !others().any(same)
            });
            return match alone {
                Some(process) => format!("{called} ({process})"),
                None => format!("{called} ({})", by_number()),
            };
        }
        match (vm.process, &vm.comm) {
            (Some(process), Some(comm))
                if vm.identity.kind != VmKind::Unspin
                    && !others().any(|other| other.process == Some(process)) =>
            {
                format!("{} ({process})", printable(comm, NAME_LENGTH_MAX))
            }
            _ => by_number(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_thread_id_means_the_latest_that_was_seen() {
        let task = |thread, comm: &str, first_seen_ns| TaskFacts {
            thread,
            comm: comm.to_owned(),
            first_seen_ns,
            ..TaskFacts::default()
        };
        let facts = Facts {
            tasks: vec![task(7, "make", 100), task(8, "cc", 150), task(7, "ld", 200)],
            ..Facts::default()
        };
        let name = |time_ns| facts.task_at(7, time_ns).map(|task| task.comm.as_str());
        assert_eq!(name(50), Some("make"), "its name was read a moment later");
        assert_eq!(name(199), Some("make"));
        assert_eq!(name(200), Some("ld"));
        assert_eq!(facts.task_at(9, 200), None);
    }

    #[test]
    fn a_vm_is_called_so_that_no_other_can_be_meant() {
        let vm = |vm, process, name: Option<&str>, kind| VmFacts {
            vm,
            process,
            comm: Some("kvm\u{1b}".to_owned()),
            identity: VmIdentity {
                kind,
                name: name.map(str::to_owned),
                ..VmIdentity::default()
            },
            ..VmFacts::default()
        };
        let facts = Facts {
            vms: vec![
                vm(0, Some(10), Some("web"), VmKind::Libvirt),
                vm(1, Some(11), Some("db"), VmKind::Libvirt),
                vm(2, Some(12), Some("db"), VmKind::Libvirt),
                vm(3, None, Some("db"), VmKind::Libvirt),
                vm(4, Some(14), None, VmKind::Other),
                vm(5, Some(15), None, VmKind::Other),
                vm(6, Some(15), None, VmKind::Other),
                vm(7, Some(17), None, VmKind::Unspin),
                vm(8, None, None, VmKind::Other),
            ],
            ..Facts::default()
        };
        let names: Vec<_> = (0..=9).map(|number| facts.vm_name(number)).collect();
        let expected = [
            "web",
            "db (11)",
            "db (12)",
            "db (vm3)",
            "kvm? (14)",
            "vm5",
            "vm6",
            "vm7",
            "vm8",
            "vm9",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn facts_of_before_have_a_name_and_nothing_else() {
        let old = r#"{"vm":3,"process":100,"name":"web","vcpus":[]}"#;
        let vm: VmFacts = serde_json::from_str(old).expect("a VM");
        assert_eq!(vm.identity.name.as_deref(), Some("web"));
        assert_eq!(vm.identity.kind, VmKind::Other);
        let again = serde_json::to_string(&vm).expect("text");
        assert_eq!(serde_json::from_str::<VmFacts>(&again).expect("a VM"), vm);
    }

    #[test]
    fn windows_come_from_the_module_that_is_loaded() {
        let mut kvm = KvmFacts {
            module: Some("kvm_amd".to_owned()),
            ..KvmFacts::default()
        };
        assert_eq!(kvm.window_and_gap(), (None, None));
        kvm.parameters
            .insert("pause_filter_count".to_owned(), Some("3000".to_owned()));
        kvm.parameters
            .insert("ple_window".to_owned(), Some("4096".to_owned()));
        kvm.parameters
            .insert("pause_filter_thresh".to_owned(), None);
        assert_eq!(kvm.window_and_gap(), (Some(3000), None));
    }
}
