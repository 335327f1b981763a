// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of a scenario, for editors. The parser is the law; a test holds their keys together.

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use unspin_abi::LockKind;

/// The JSON Schema (draft 2020-12) of a scenario file.
pub fn json_schema() -> serde_json::Value {
    let mut schema = schema_for!(Scenario).to_value();
    let names: Vec<_> = LockKind::all().map(LockKind::name).collect();
    schema["$defs"]["Vm"]["properties"]["lock"]["enum"] = serde_json::json!(names);
    schema["oneOf"] = serde_json::json!([{"required": ["duration"]}, {"required": ["iterations"]}]);
    schema
}

const TIME: &str = r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s)$";
const WORD: &str = r"^[A-Za-z0-9._+=,/-]{1,128}$";
const WORK: &str = r"^[0-9]+(\.[0-9]+)? ?(loops?|ns|us|ms|s)$";

/// What runs, on what host, for how long, from which seed.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[allow(dead_code)]
struct Scenario {
    /// A short name for tables; the file's stem when absent.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    name: Option<String>,
    /// Everything random follows from it; 1 when absent.
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_i64))]
    seed: Option<i64>,
    /// How long the run lasts, such as "2s"; above 0. Either this or `iterations`.
    #[schemars(regex(pattern = TIME))]
    duration: Option<String>,
    /// The run ends when each vCPU has done so many iterations.
    #[schemars(range(min = 1))]
    iterations: Option<u32>,
    /// What rates leave out at the beginning; shorter than `duration`, 0 when absent.
    #[schemars(regex(pattern = TIME))]
    warm_up: Option<String>,
    /// The machine below the VMs.
    host: Option<Host>,
    /// The host that `unspin lab` simulates; nobody else looks at it.
    lab: Option<LabSettings>,
    /// Groups of equal VMs.
    #[schemars(length(min = 1))]
    vm: Vec<Vm>,
}

/// The machine below the VMs.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[allow(dead_code)]
struct Host {
    /// pCPUs that vCPUs may use, from CPU 0 on; all of the host when absent.
    #[schemars(range(min = 1, max = 4096))]
    cpus: Option<u32>,
    /// pause_filter_count of kvm_amd (PAUSEs), ple_window of kvm_intel (TSC cycles); KVM's default when absent.
    #[schemars(range(min = 1, max = 65535))]
    ple_window: Option<u32>,
    /// pause_filter_thresh of kvm_amd, ple_gap of kvm_intel (cycles); KVM's default when absent.
    #[schemars(range(min = 1, max = 65535))]
    ple_gap: Option<u32>,
    /// true: KVM leaves the window as it is; false (default): KVM grows and resets it.
    ple_window_fixed: Option<bool>,
}

/// The host that `unspin lab` simulates below the VMs.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[allow(dead_code)]
struct LabSettings {
    /// Host scheduler by name and version, as in "eevdf-6.6" or "cfs-4.13+debooster=paper"; "eevdf-7.2" when absent.
    #[schemars(regex(pattern = WORD))]
    scheduler: Option<String>,
    /// Steering policies of the scheduler "steer", as in "loan".
    #[schemars(regex(pattern = WORD))]
    policy: Option<String>,
    /// Sockets x last-level caches of each x cores of each x threads of each, as in "2x4x8x2"; host.cpus (2 when that is
    /// absent, too) below one cache when absent.
    #[schemars(regex(pattern = r"^[0-9]+(x[0-9]+){3}$"))]
    topology: Option<String>,
    /// Whose pause-loop hardware; "amd" when absent.
    vendor: Option<Vendor>,
    /// Who changes the window of pause-loop exits; "kvm" when absent, "fixed" with host.ple_window_fixed.
    #[schemars(regex(pattern = WORD))]
    window_control: Option<String>,
    /// How many iterations the host tells guests with a pv page to spin before they halt or ask for help, as in "4096", or
    /// "apple", or "apple=64/64/512/4096" (step, least, first, most); nothing when absent.
    #[schemars(regex(pattern = WORD))]
    spin_count: Option<String>,
    /// Whom kvm_vcpu_on_spin() chooses; "kvm-7.2" when absent.
    #[schemars(regex(pattern = WORD))]
    candidates: Option<String>,
    /// Strict boost: who was sent a reschedule only is no receiver; false when absent.
    ignore_reschedules: Option<bool>,
    /// eCS's extra schedule for guests with pv pages; "off" when absent.
    ecs: Option<Ecs>,
    /// How much older the facts of steering policies are than they would be at best, at most "1s"; 0 when absent.
    #[schemars(regex(pattern = TIME))]
    facts_age: Option<String>,
    /// How often one of these facts is unknown because its event was lost, parts per million; 0 when absent.
    #[schemars(range(min = 0, max = 1_000_000))]
    lost_ppm: Option<u32>,
    /// Steering policies' extra time ends at ticks only: a kernel without scx_bpf_kick_cpu; false when absent.
    tick_only: Option<bool>,
    /// Between two looks at a borrower that gives no pv pages; "200us" when absent.
    #[schemars(regex(pattern = TIME))]
    poll_period: Option<String>,
    /// How long a vCPU without work polls before it sleeps, at most "1s"; not at all when absent.
    #[schemars(regex(pattern = TIME))]
    halt_poll: Option<String>,
    /// Guest tasks on each vCPU, which do the scenario's iterations each; 1 when absent.
    #[schemars(range(min = 1, max = 64))]
    guest_tasks: Option<u32>,
    /// A page that the host has to fetch is touched every so many iterations of a vCPU; 0 or absent: never.
    page_fault_every_iterations: Option<u32>,
    /// How long the host fetches a page, at most "1s"; "100us" when absent.
    #[schemars(regex(pattern = TIME))]
    page_fetch: Option<String>,
    /// Whether the guest is told meanwhile (KVM_FEATURE_ASYNC_PF) or its vCPU sleeps; true when absent.
    async_page_faults: Option<bool>,
    /// Shootdowns leave out descheduled vCPUs (KVM_FEATURE_PV_TLB_FLUSH); false when absent.
    pv_tlb_flush: Option<bool>,
    /// Who waits for an answer yields to a descheduled receiver (KVM_FEATURE_PV_SCHED_YIELD); false when absent.
    pv_sched_yield: Option<bool>,
    /// Interrupts for several receivers take one hypercall (KVM_FEATURE_PV_SEND_IPI); false when absent.
    pv_send_ipi: Option<bool>,
    /// Threads that use CPU time beside the VMs; 0 when absent.
    #[schemars(range(min = 0, max = 4096))]
    cpu_hogs: Option<u32>,
    /// Which tasks share a group of the host scheduler: those of a "vm" (default), or each "vcpu" has one of its own in its
    /// VM's, as libvirt does it.
    groups: Option<Groups>,
    /// cpu.weight (1 to 10000, 100 is usual) of the VMs of each [[vm]].
    weights: Option<Vec<u32>>,
    /// pCPUs of the VMs of each [[vm]], as in "0-3,6".
    pins: Option<Vec<String>>,
    /// Costs that differ from the lab's defaults, by name, in the unit that ends the name.
    costs: Option<BTreeMap<String, u32>>,
}

/// Whose pause-loop hardware.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[allow(dead_code)]
enum Vendor {
    /// Windows in PAUSEs.
    Amd,
    /// Windows in TSC cycles.
    Intel,
}

/// eCS's extra schedule.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code)]
enum Ecs {
    /// None.
    Off,
    /// As published.
    Paper,
    /// What is left of it is given back at unlock.
    GiveBack,
}

/// Which tasks share a group.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[allow(dead_code)]
enum Groups {
    /// All vCPUs of a VM.
    Vm,
    /// Each vCPU has its own.
    Vcpu,
}

/// A group of equal VMs.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[allow(dead_code)]
struct Vm {
    /// How many; 1 when absent.
    #[schemars(range(min = 1, max = 1000))]
    count: Option<u32>,
    /// vCPUs of each.
    #[schemars(range(min = 1, max = 64))]
    vcpus: u32,
    /// The lock its vCPUs take.
    lock: String,
    /// How many locks all vCPUs share (each iteration draws one), or "private": one per vCPU. 1 when absent.
    locks: Option<Locks>,
    /// Work in user mode per iteration; nothing when absent.
    user_work: Option<Work>,
    /// Work in the guest kernel outside the lock, per iteration; nothing when absent.
    kernel_work: Option<Work>,
    /// Work inside the lock, per iteration.
    hold: Work,
    /// A TLB shootdown every so many iterations; 0 or absent: never.
    shootdown_every_iterations: Option<u32>,
    /// A wake-up of a halted vCPU every so many iterations; 0 or absent: never.
    wakeup_every_iterations: Option<u32>,
    /// Timer interrupts per second and vCPU; 250 when absent.
    #[schemars(range(min = 0, max = 10000))]
    tick_hz: Option<u32>,
    /// PAUSE at every so many iterations of a waiting loop; 1 when absent.
    #[schemars(range(min = 1, max = 65536))]
    pause_every_spins: Option<u32>,
    /// Whether PAUSE may exit; true when absent.
    pause_exits: Option<bool>,
    /// Whether HLT exits; true when absent.
    halt_exits: Option<bool>,
    /// Waits of ground truth kept per vCPU; 0 when absent. 64 bytes each, 10 MiB for all vCPUs.
    log_records: Option<u32>,
    /// Waits of fewer iterations are left out of the log; 0 when absent.
    log_minimum_spins: Option<u32>,
    /// Whether the guest tells the host what it asks for, holds and waits for; false when absent.
    pv_page: Option<bool>,
    /// In whose pages these pv pages lie; "guest" when absent.
    pv_page_memory: Option<PvPageMemory>,
    /// A vCPU that waits for a lock asks the host to run somebody else (the policy `helping`) each time it has waited so
    /// many iterations; 0 or absent: never. Above an ordinary wait, below one for a vCPU off its CPU (Friebel 2008).
    help_after_spins: Option<u32>,
    /// Tasks of each vCPU, which take turns on it; 1 when absent, 64 in all.
    #[schemars(range(min = 1, max = 8))]
    tasks_per_vcpu: Option<u32>,
    /// What their iterations do; "iterations" when absent.
    workload: Option<Workload>,
    /// Iterations that take the lock for reading, percent ("readers-writers", "read-a-file"); 0 when absent.
    #[schemars(range(min = 0, max = 100))]
    reader_percent: Option<u32>,
    /// What of eCS the guest leaves out; "none" when absent.
    ecs_ablation: Option<EcsAblation>,
}

/// What tasks do.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code)]
enum Workload {
    /// Work in user mode, work in the kernel, a lock held.
    Iterations,
    /// The same, the lock taken for reading by a share of the iterations.
    ReadersWriters,
    /// The same, and after each iteration an interrupt whose handler works as long as the kernel.
    Interrupts,
    /// Pairs of tasks on neighbouring vCPUs wake each other instead of taking the lock.
    PingPong,
    /// All read one page of a file: the lock for reading, an RCU section, the page's lock, a copy of 4 KiB (eCS, 5.3).
    ReadAFile,
}

/// In whose pages pv pages lie. The guest cannot tell.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code)]
enum PvPageMemory {
    /// In the guest's memory, like all else.
    Guest,
    /// In those of our scheduler's BPF map, which the VMM puts into the guest's memory; "guest" where none of ours runs when
    /// the VMs start.
    Map,
}

/// What of eCS is left out.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code)]
enum EcsAblation {
    /// Nothing.
    None,
    /// Preemptable counters are not saved when tasks are switched.
    NoSave,
}

/// How many locks, and who shares them.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)]
enum Locks {
    /// So many for all vCPUs of a VM.
    Shared(#[schemars(range(min = 1, max = 64))] u32),
    /// One per vCPU.
    Private(Private),
}

/// The word "private".
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[allow(dead_code)]
enum Private {
    /// One lock per vCPU: nobody ever waits.
    Private,
}

/// A distribution of work.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)]
enum Work {
    /// Always the same.
    Constant(#[schemars(regex(pattern = WORK))] String),
    /// A shape and its numbers.
    Drawn(Drawn),
}

/// A distribution that is drawn from.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", deny_unknown_fields)]
#[allow(dead_code)]
enum Drawn {
    /// Exponential of that mean.
    Exponential(#[schemars(regex(pattern = WORK))] String),
    /// Equally likely between both, included.
    Uniform([String; 2]),
}
