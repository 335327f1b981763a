// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scenario says: a struct for each table, a field for each key. What a field is called, how its value is written
//! (`crate::forms`), what it may be and what it is when absent stands at the field and nowhere else: the parser, the
//! canonical text (in order of the fields) and the schema follow from it. Rules between keys are in `crate::check`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unspin_abi::LockKind;

use crate::{
    forms::{Count, LockName, LockSharing, Whole},
    lab::LabSettings,
    limits::{
        CPUS_MAX, LOAD_CHANGES_EVERY_MS_MAX, PAUSE_EVERY_MAX, PLE_MAX, TASKS_PER_VCPU_MAX,
        TICK_HZ_MAX, VCPUS_MAX, VMS_MAX,
    },
    work::Distribution,
};

/// What runs, on what host, for how long, from which seed. `crate::file::File` is how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// A short name for tables; the file's stem when the file gives none.
    pub name: String,
    /// Everything random follows from it.
    pub seed: u64,
    /// When a run ends.
    pub length: Length,
    /// Nanoseconds after the last first instruction that rates leave out; 0 with `Length::Iterations`.
    pub warm_up_ns: u64,
    /// The machine below the VMs.
    pub host: Host,
    /// The host that the lab simulates; nobody else looks at it.
    pub lab: Option<LabSettings>,
    /// In order of the file; `Vm::count` copies of each, numbered through.
    pub vms: Vec<Vm>,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After so many nanoseconds since the last vCPU's first instruction. Above 0.
    DurationNs(u64),
    /// When each vCPU has done so many iterations. Above 0.
    Iterations(u32),
}

/// The machine below the VMs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// pCPUs that vCPUs may use, from CPU 0 on; all of the host when absent.
    #[serde(with = "Whole::<1, CPUS_MAX>")]
    pub cpus: Option<u32>,
    /// `pause_filter_count` of kvm_amd (PAUSEs), `ple_window` of kvm_intel (TSC cycles); KVM's default when absent.
    #[serde(with = "Whole::<1, PLE_MAX>")]
    pub ple_window: Option<u32>,
    /// `pause_filter_thresh` of kvm_amd, `ple_gap` of kvm_intel (cycles); KVM's default, 128, when absent.
    #[serde(with = "Whole::<1, PLE_MAX>")]
    pub ple_gap: Option<u32>,
    /// Whether the window stays as it is set (KVM's grow and shrink are 1) or KVM grows and resets it (2 and 0, its defaults).
    pub ple_window_fixed: bool,
}

/// A group of equal VMs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// How many of them.
    #[serde(with = "Whole::<1, VMS_MAX>", default = "one")]
    pub count: u32,
    /// vCPUs of each.
    #[serde(with = "Whole::<1, VCPUS_MAX>")]
    pub vcpus: u32,
    /// The lock its vCPUs take.
    #[serde(with = "LockName")]
    pub lock: LockKind,
    /// How many locks all vCPUs of a VM share (each iteration draws one), or "private": one for each vCPU.
    #[serde(default)]
    pub locks: LockSharing,
    /// Work in user mode (CPL 3) of each iteration.
    #[serde(default)]
    pub user_work: Distribution,
    /// Work in the guest kernel (CPL 0) outside the lock, of each iteration.
    #[serde(default)]
    pub kernel_work: Distribution,
    /// Work in the guest kernel inside the lock, of each iteration.
    pub hold: Distribution,
    /// A TLB shootdown every so many iterations; 0: never.
    #[serde(with = "Count", default)]
    pub shootdown_every_iterations: u32,
    /// A wake-up of a halted vCPU every so many iterations; 0: never.
    #[serde(with = "Count", default)]
    pub wakeup_every_iterations: u32,
    /// The load changes each time so many milliseconds have passed: from the locks without shootdowns to a lock of each vCPU's own with
    /// shootdowns, and back; 0: both all the time.
    #[serde(with = "Whole::<0, LOAD_CHANGES_EVERY_MS_MAX>", default)]
    pub load_changes_every_ms: u32,
    /// Timer interrupts per second and vCPU.
    #[serde(with = "Whole::<0, TICK_HZ_MAX>", default = "tick_hz")]
    pub tick_hz: u32,
    /// PAUSE at every so many iterations of a waiting loop.
    #[serde(with = "Whole::<1, PAUSE_EVERY_MAX>", default = "one")]
    pub pause_every_spins: u32,
    /// Waits of ground truth kept for each vCPU, 64 bytes each, 10 MiB for all vCPUs of a VM; 0: none.
    #[serde(with = "Count", default)]
    pub log_records: u32,
    /// Waits of fewer iterations of the waiting loop are left out of the log.
    #[serde(with = "Count", default)]
    pub log_minimum_spins: u32,
    /// A vCPU that waits for a lock asks the host to run another one (the policy `helping`) each time it has waited so many
    /// iterations; 0: never. Above an ordinary wait, below one for a vCPU that has no pCPU (Friebel 2008).
    #[serde(with = "Count", default)]
    pub help_after_spins: u32,
    /// Tasks of each vCPU, which share its time; at most 64 in a VM.
    #[serde(with = "Whole::<1, TASKS_PER_VCPU_MAX>", default = "one")]
    pub tasks_per_vcpu: u32,
    /// Iterations that take the lock for reading, percent, in the workloads "readers-writers" and "read-a-file".
    #[serde(with = "Whole::<0, 100>", default)]
    pub reader_percent: u32,
    /// Whether PAUSE may exit; without, `KVM_CAP_X86_DISABLE_EXITS` is used.
    #[serde(default = "yes")]
    pub pause_exits: bool,
    /// Whether HLT exits.
    #[serde(default = "yes")]
    pub halt_exits: bool,
    /// Whether the guest publishes what it asks for, holds and waits for (`abi/guest/pv_page.h`).
    #[serde(default)]
    pub pv_page: bool,
    /// In whose memory these pv pages lie.
    #[serde(default)]
    pub pv_page_memory: PvPageMemory,
    /// What the tasks do with their iterations.
    #[serde(default)]
    pub workload: Workload,
    /// What of eCS the guest leaves out, to show what it is for.
    #[serde(default)]
    pub ecs_ablation: EcsAblation,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

fn tick_hz() -> u32 {
    250
}

/// What the tasks of a VM do with their iterations (`abi/guest/memory.h`, `enum unspin_guest_workload`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Work in user mode, work in the kernel, a lock held.
    #[default]
    Iterations,
    /// The same, the lock taken for reading by a share of the iterations.
    ReadersWriters,
    /// The same, and after each iteration an interrupt whose handler works as long as the kernel.
    Interrupts,
    /// Pairs of tasks on neighbouring vCPUs wake each other instead of taking the lock.
    PingPong,
    /// All read one page of a file: the lock for reading, an RCU section, the page's lock, a copy of 4 KiB (eCS, section 5.3).
    ReadAFile,
}

impl Workload {
    /// Its number in the guest's parameters.
    pub fn number(self) -> u32 {
        self as u32
    }
}

/// In whose memory a guest's pv pages lie; the guest cannot see the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PvPageMemory {
    /// In the guest's memory, like all else.
    #[default]
    Guest,
    /// In pages of the running scheduler's BPF map, which the VMM puts into the guest's memory (`abi/bpf/pv_page_map.h`);
    /// "guest" where no scheduler of ours runs when the VMs start.
    Map,
}

/// What of eCS a guest leaves out, to show what it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcsAblation {
    /// Nothing.
    #[default]
    None,
    /// Preemptable counters are not saved when tasks are switched.
    NoSave,
}

impl Scenario {
    /// The seed of VM number `number`, counted through all groups: the `number + 1`st output of splitmix64 (Steele, Lea,
    /// Flood, OOPSLA'14), so that equal VMs do not run in step.
    pub fn vm_seed(&self, number: u32) -> u64 {
        const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let step = GOLDEN_GAMMA.wrapping_mul(u64::from(number) + 1);
        let mut z = self.seed.wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
