// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `[lab]` says: the host that the lab simulates below the VMs. Worlds with a real host ignore it.
//!
//! Names of schedulers, policies and costs are the lab's own: it says which there are, and refuses the others before
//! anything runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    HostNoise,
    forms::{Costs, Count, LabName, LabTopology, Pins, Time, Weights, Whole},
    limits::{CPU_HOGS_MAX, FACTS_AGE_MAX_NS, GUEST_TASKS_MAX, HALT_POLL_MAX_NS, PPM_MAX},
};

/// The host that `unspin lab` simulates below the VMs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LabSettings {
    /// Host scheduler by name and version, as in "eevdf-6.6" or "cfs-4.13+debooster=paper"; "eevdf-7.2" when absent.
    #[serde(with = "LabName")]
    pub scheduler: Option<String>,
    /// Steering policies of the scheduler "steer", as in "loan,slice=2ms", or "auto"; none when absent.
    #[serde(with = "LabName")]
    pub policy: Option<String>,
    /// Who changes the window of pause-loop exits; "kvm" when absent, "fixed" with `host.ple_window_fixed`.
    #[serde(with = "LabName")]
    pub window_control: Option<String>,
    /// How many iterations the host tells guests with a pv page to spin before they halt or ask for help, as in "4096", or
    /// "apple", or "apple=64/64/512/4096" (step, least, first, most); nothing when absent.
    #[serde(with = "LabName")]
    pub spin_count: Option<String>,
    /// Whom `kvm_vcpu_on_spin()` chooses; "kvm-7.2" when absent.
    #[serde(with = "LabName")]
    pub candidates: Option<String>,
    /// Which pCPUs share what; `host.cpus` (2 when that is absent, too) below one cache when absent.
    #[schemars(with = "LabTopology")]
    pub topology: Option<LabTopology>,
    /// Whose pause-loop hardware.
    pub vendor: LabVendor,
    /// Strict boost: a vCPU that was sent a reschedule interrupt only is no receiver.
    pub ignore_reschedules: bool,
    /// eCS's extra schedule for guests with pv pages.
    pub ecs: LabEcs,
    /// How much older the facts of steering policies are than they would be at best.
    #[serde(rename = "facts_age", with = "Time::<0, { FACTS_AGE_MAX_NS as u64 }>")]
    pub facts_age_ns: u32,
    /// How often one of these facts is unknown because its event was lost, parts per million.
    #[serde(with = "Whole::<0, PPM_MAX>")]
    pub lost_ppm: u32,
    /// Steering policies' extra time ends at ticks only: a kernel without `scx_bpf_kick_cpu`.
    pub tick_only: bool,
    /// Time between two polls of a borrower that gives no pv pages; "200us", as in the BPF scheduler, when absent.
    #[serde(
        rename = "poll_period",
        with = "Time::<1, { FACTS_AGE_MAX_NS as u64 }>"
    )]
    pub poll_period_ns: Option<u32>,
    /// How long a vCPU without work polls before it sleeps; 0: not at all.
    #[serde(rename = "halt_poll", with = "Time::<0, { HALT_POLL_MAX_NS as u64 }>")]
    pub halt_poll_ns: u32,
    /// Guest tasks on each vCPU; each does the scenario's iterations.
    #[serde(with = "Whole::<1, GUEST_TASKS_MAX>")]
    pub guest_tasks: u32,
    /// A page that the host has to fetch is touched every so many iterations of a vCPU; 0: never.
    #[serde(with = "Count")]
    pub page_fault_every_iterations: u32,
    /// How long the host fetches a page; "100us" when absent.
    #[serde(rename = "page_fetch", with = "Time::<1, { FACTS_AGE_MAX_NS as u64 }>")]
    pub page_fetch_ns: Option<u32>,
    /// Whether the guest is notified meanwhile (`KVM_FEATURE_ASYNC_PF`) or its vCPU sleeps.
    pub async_page_faults: bool,
    /// Shootdowns leave out descheduled vCPUs (`KVM_FEATURE_PV_TLB_FLUSH`).
    pub pv_tlb_flush: bool,
    /// A vCPU that waits for an answer yields to a descheduled receiver (`KVM_FEATURE_PV_SCHED_YIELD`).
    pub pv_sched_yield: bool,
    /// Interrupts for several receivers take one hypercall (`KVM_FEATURE_PV_SEND_IPI`).
    pub pv_send_ipi: bool,
    /// Threads that use CPU time beside the VMs.
    #[serde(with = "Whole::<0, CPU_HOGS_MAX>")]
    pub cpu_hogs: u32,
    /// What the host does besides running vCPUs: "idle" when absent.
    pub host_noise: HostNoise,
    /// Whether the ticks of pCPUs are spread over half a period (the kernel's parameter `skew_tick=1`); otherwise all pCPUs tick at
    /// once.
    pub skew_tick: bool,
    /// Which tasks share a group of the host scheduler: those of a "vm", or each "vcpu" has a group of its own in its VM's, as
    /// libvirt does it.
    pub groups: LabGroups,
    /// `cpu.weight` of the VMs of each `[[vm]]`, in their order; 100, the kernel's default, when absent.
    #[serde(with = "Weights")]
    pub weights: Vec<u32>,
    /// pCPUs of the VMs of each `[[vm]]`, in their order, as in "0-3,6"; all when absent.
    #[serde(with = "Pins")]
    pub pins: Vec<Vec<u32>>,
    /// Costs that differ from the lab's defaults, by name, in the unit that ends the name.
    #[serde(with = "Costs")]
    pub costs: BTreeMap<String, u32>,
}

impl Default for LabSettings {
    /// An empty table.
    fn default() -> LabSettings {
        LabSettings {
            scheduler: None,
            policy: None,
            window_control: None,
            spin_count: None,
            candidates: None,
            topology: None,
            vendor: LabVendor::default(),
            ignore_reschedules: false,
            ecs: LabEcs::default(),
            facts_age_ns: 0,
            lost_ppm: 0,
            tick_only: false,
            poll_period_ns: None,
            halt_poll_ns: 0,
            guest_tasks: 1,
            page_fault_every_iterations: 0,
            page_fetch_ns: None,
            async_page_faults: true,
            pv_tlb_flush: false,
            pv_sched_yield: false,
            pv_send_ipi: false,
            cpu_hogs: 0,
            host_noise: HostNoise::default(),
            skew_tick: false,
            groups: LabGroups::default(),
            weights: Vec::new(),
            pins: Vec::new(),
            costs: BTreeMap::new(),
        }
    }
}

/// Whose pause-loop hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabVendor {
    /// Windows in PAUSEs.
    #[default]
    Amd,
    /// Windows in TSC cycles.
    Intel,
}

/// eCS's extra schedule for vCPUs that hold a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabEcs {
    /// None.
    #[default]
    Off,
    /// As published.
    Paper,
    /// What is left of it is given back at unlock: ours.
    GiveBack,
}

/// Which tasks share a group of the host scheduler, as cgroups do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabGroups {
    /// All vCPUs of a VM.
    #[default]
    Vm,
    /// Each vCPU has one of its own, below its VM's: libvirt's layout.
    Vcpu,
}
