// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a checked scenario says. Every value here is in range: only `parse` makes these types from text.

use unspin_abi::LockKind;

use crate::lab::LabSettings;

/// What runs, on what host, for how long, from which seed.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// pCPUs that vCPUs may use, from CPU 0 on; `None`: all of the host.
    pub cpus: Option<u32>,
    /// `pause_filter_count` for `kvm_amd`, `ple_window` for `kvm_intel`; `None`: KVM's default.
    pub ple_window: Option<u32>,
    /// `pause_filter_thresh`, `ple_gap`; `None`: KVM's default (128).
    pub ple_gap: Option<u32>,
    /// Whether KVM may move the window (grow 2, shrink 0, its defaults) or it stays as set (grow and shrink 1).
    pub ple_window_fixed: bool,
}

/// A group of equal VMs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// How many of them, 1 to 1,000.
    pub count: u32,
    /// 1 to 64.
    pub vcpus: u32,
    /// The lock its vCPUs take.
    pub lock: LockKind,
    /// How many of them, and who shares them.
    pub locks: LockSharing,
    /// Work at CPL 3 between iterations.
    pub user_work: Distribution,
    /// Work at CPL 0 outside the lock.
    pub kernel_work: Distribution,
    /// Work at CPL 0 inside the lock.
    pub hold: Distribution,
    /// A TLB shootdown every so many iterations; 0: never.
    pub shootdown_every_iterations: u32,
    /// A wake-up of a halted vCPU every so many iterations; 0: never.
    pub wakeup_every_iterations: u32,
    /// Timer interrupts per second and vCPU, 0 to 10,000.
    pub tick_hz: u32,
    /// PAUSE at every so many iterations of a waiting loop, 1 to 65,536.
    pub pause_every_spins: u32,
    /// Whether PAUSE may exit (`KVM_CAP_X86_DISABLE_EXITS` when false).
    pub pause_exits: bool,
    /// Whether HLT exits.
    pub halt_exits: bool,
    /// Waits of ground truth kept per vCPU; 0: none.
    pub log_records: u32,
    /// Waits shorter than this many iterations are left out of the log.
    pub log_minimum_spins: u32,
    /// Whether the guest tells the host what it asks for, holds and waits for (`abi/guest/pv_page.h`).
    pub pv_page: bool,
    /// In whose pages these pv pages lie.
    pub pv_page_memory: PvPageMemory,
    /// A vCPU asks the host to run somebody else each time it has waited so many iterations for a lock; 0: never.
    pub help_after_spins: u32,
    /// Tasks of each vCPU, 1 to 8; 64 in all.
    pub tasks_per_vcpu: u32,
    /// What their iterations do.
    pub workload: Workload,
    /// Iterations that take the lock for reading, percent, in the workloads that have readers.
    pub reader_percent: u32,
    /// What of eCS is left out.
    pub ecs_ablation: EcsAblation,
}

/// What the tasks of a VM do with their iterations (`abi/guest/memory.h`, `enum unspin_guest_workload`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// Work in user mode, work in the kernel, a lock held.
    #[default]
    Iterations,
    /// The same, the lock taken for reading by a share of the iterations.
    ReadersWriters,
    /// The same, and after each iteration an interrupt whose handler works.
    Interrupts,
    /// Pairs of tasks on neighbouring vCPUs wake each other.
    PingPong,
    /// All read one page of a file (eCS, section 5.3).
    ReadAFile,
}

impl Workload {
    /// The words of scenarios, each with what it means.
    pub const WORDS: [(&str, Workload); 5] = [
        ("iterations", Workload::Iterations),
        ("readers-writers", Workload::ReadersWriters),
        ("interrupts", Workload::Interrupts),
        ("ping-pong", Workload::PingPong),
        ("read-a-file", Workload::ReadAFile),
    ];

    /// Its number in the guest's parameters.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}

/// In whose pages a guest's pv pages lie; the guest cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PvPageMemory {
    /// The guest's memory, like all else.
    #[default]
    Guest,
    /// Those of the running scheduler's BPF map, which the VMM puts into the guest's memory (`abi/bpf/pv_page_map.h`).
    Map,
}

impl PvPageMemory {
    /// The words of scenarios.
    pub const WORDS: [(&str, PvPageMemory); 2] =
        [("guest", PvPageMemory::Guest), ("map", PvPageMemory::Map)];

    /// Its word.
    pub fn name(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}

/// What of eCS a guest leaves out, to show what it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcsAblation {
    /// Nothing.
    #[default]
    None,
    /// Preemptable counters are not saved when tasks are switched.
    NoSave,
}

impl EcsAblation {
    /// The words of scenarios.
    pub const WORDS: [(&str, EcsAblation); 2] = [
        ("none", EcsAblation::None),
        ("no-save", EcsAblation::NoSave),
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}

/// Who shares locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockSharing {
    /// So many locks (1 to 64) for all vCPUs of a VM; each iteration draws one.
    Shared(u32),
    /// One lock per vCPU: nobody ever waits.
    Private,
}

/// What a number of a distribution counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkUnit {
    /// Iterations of the two-instruction work loop: the same on every machine.
    Loops,
    /// Nanoseconds of CPU time: turned into loops by a measured rate.
    Nanoseconds,
}

/// A distribution of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// What the numbers count.
    pub unit: WorkUnit,
    /// Its shape.
    pub shape: Shape,
}

/// The shape of a distribution, in its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Always this.
    Constant(u64),
    /// Equally likely between both, included; `low <= high`.
    Uniform {
        /// Least value.
        low: u64,
        /// Largest value.
        high: u64,
    },
    /// Exponential of that mean; above 0.
    Exponential {
        /// Its mean.
        mean: u64,
    },
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
