// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `[lab]` says: the host that the lab simulates below the VMs. Worlds with a real host ignore it.
//!
//! Names of schedulers, policies and costs are the lab's own: it says which there are, and refuses the others before
//! anything runs.

use std::collections::BTreeMap;

/// The simulated host. `None`: the lab's default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabSettings {
    /// Host scheduler by name and version, as in "eevdf-6.6" or "cfs-4.13+debooster=paper".
    pub scheduler: Option<String>,
    /// Steering policies of the scheduler "steer", as in "loan,slice=2ms".
    pub policy: Option<String>,
    /// Which pCPUs share what; `None`: as many as `host.cpus` says, each beside all others.
    pub topology: Option<LabTopology>,
    /// Whose pause-loop hardware.
    pub vendor: LabVendor,
    /// Who changes the window of pause-loop exits, by name.
    pub window_control: Option<String>,
    /// How many iterations the host tells guests with a pv page to spin before they halt or ask for help: a number, or "apple"
    /// with or without its numbers; `None`: nothing.
    pub spin_count: Option<String>,
    /// Whom `kvm_vcpu_on_spin()` chooses, by name.
    pub candidates: Option<String>,
    /// Strict boost: who was sent a reschedule only is no receiver.
    pub ignore_reschedules: bool,
    /// eCS's extra schedule for guests with pv pages.
    pub ecs: LabEcs,
    /// How much older the facts of steering policies are than they would be at best, ns.
    pub facts_age_ns: u32,
    /// How often one of these facts is unknown because its event was lost, parts per million.
    pub lost_ppm: u32,
    /// Steering policies' extra time ends at ticks only: a kernel without `scx_bpf_kick_cpu`.
    pub tick_only: bool,
    /// Between two looks at a borrower that gives no pv pages, ns, 1 or more; `None`: as our scheduler does it.
    pub poll_period_ns: Option<u32>,
    /// How long a vCPU without work polls before it sleeps, ns; 0: not at all.
    pub halt_poll_ns: u32,
    /// Guest tasks on each vCPU, 1 or more; each does the scenario's iterations.
    pub guest_tasks: u32,
    /// A page that the host has to fetch is touched every so many iterations of a vCPU; 0: never.
    pub page_fault_every_iterations: u32,
    /// How long the host fetches one, ns; `None`: the lab's default.
    pub page_fetch_ns: Option<u32>,
    /// Whether the guest is told meanwhile (`KVM_FEATURE_ASYNC_PF`) or its vCPU sleeps.
    pub async_page_faults: bool,
    /// Shootdowns leave out descheduled vCPUs (`KVM_FEATURE_PV_TLB_FLUSH`).
    pub pv_tlb_flush: bool,
    /// Whoever waits for an answer yields to a descheduled receiver (`KVM_FEATURE_PV_SCHED_YIELD`).
    pub pv_sched_yield: bool,
    /// Interrupts for several receivers take one hypercall (`KVM_FEATURE_PV_SEND_IPI`).
    pub pv_send_ipi: bool,
    /// Threads that use CPU time beside the VMs.
    pub cpu_hogs: u32,
    /// Which tasks share a group of the host scheduler.
    pub groups: LabGroups,
    /// `cpu.weight` (1 to 10,000; the kernel's default is 100) of each VM of a `[[vm]]`, in their order; empty: 100.
    pub weights: Vec<u32>,
    /// pCPUs, ascending, of each VM of a `[[vm]]`, in their order; empty: all.
    pub pins: Vec<Vec<u32>>,
    /// Costs that differ from the lab's defaults, by name, in the unit that ends the name.
    pub costs: BTreeMap<String, u32>,
}

impl Default for LabSettings {
    /// An empty table.
    fn default() -> LabSettings {
        LabSettings {
            scheduler: None,
            policy: None,
            topology: None,
            vendor: LabVendor::default(),
            window_control: None,
            spin_count: None,
            candidates: None,
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
            groups: LabGroups::default(),
            weights: Vec::new(),
            pins: Vec::new(),
            costs: BTreeMap::new(),
        }
    }
}

/// Sockets, last-level caches of each, cores of each, hardware threads of each; all 1 or more, and their product at most
/// [`crate::limits::CPUS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabTopology {
    /// Sockets.
    pub sockets: u32,
    /// Last-level caches of a socket.
    pub caches: u32,
    /// Cores below a last-level cache.
    pub cores: u32,
    /// Hardware threads of a core.
    pub threads: u32,
}

impl LabTopology {
    /// How many pCPUs.
    pub const fn cpus(&self) -> u32 {
        self.sockets * self.caches * self.cores * self.threads
    }
}

/// Whose pause-loop hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabVendor {
    /// Windows in PAUSEs.
    #[default]
    Amd,
    /// Windows in TSC cycles.
    Intel,
}

/// eCS's extra schedule for vCPUs that hold a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabEcs {
    /// None.
    #[default]
    Off,
    /// As published.
    Paper,
    /// What is left of it is given back at unlock: ours.
    GiveBack,
}

impl LabEcs {
    /// All, by their words in scenarios.
    pub const WORDS: [(&str, LabEcs); 3] = [
        ("off", LabEcs::Off),
        ("paper", LabEcs::Paper),
        ("give-back", LabEcs::GiveBack),
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        let found = LabEcs::WORDS.iter().find(|(_, ecs)| *ecs == self);
        found.map_or("off", |(name, _)| name)
    }
}

/// Which tasks share a group of the host scheduler, as cgroups do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabGroups {
    /// All vCPUs of a VM.
    #[default]
    Vm,
    /// Each vCPU has one of its own, below its VM's: libvirt's layout.
    Vcpu,
}
