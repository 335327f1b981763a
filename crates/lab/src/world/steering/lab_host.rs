// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a simulated host is: its pCPUs, its pause-loop hardware, what its hypervisor does and what it gives its guests.
//!
//! What spin threshold guests with pv pages are notified of, and which exits end their waits: `bpf/window/notify.bpf.h` by the
//! rules of `policy/model/spin_threshold.h`.

use unspin_policy::{
    AppleRule, CandidateRule, Control, DEFAULT_GAP_CYCLES, SpinBound, Vendor, WaitExit, WindowRule,
    steering::{Policies, WindowPolicy},
};

use crate::{guest::raw, topology::Topology, trace_event::Observer, world::World};

/// The host's side of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabHost {
    /// Its pCPUs.
    pub topology: Topology,
    /// Whose pause-loop hardware.
    pub vendor: Vendor,
    /// Who changes the window of pause-loop exits, and where it begins.
    pub window: WindowRule,
    /// `pause_filter_thresh`, `ple_gap`, TSC cycles.
    pub gap_cycles: u32,
    /// One unit of the window, picoseconds, as a host would assume it for APPLE.
    pub window_unit_ps: u64,
    /// The spin threshold that guests with pv pages are notified of.
    pub spin_count: SpinCount,
    /// Whom `kvm_vcpu_on_spin()` chooses.
    pub candidates: CandidateRule,
    /// `ignore_vectors` of strict boost: who was sent a reschedule only is no receiver.
    pub ignore_reschedules: bool,
    /// How long a vCPU without work may poll before it sleeps, ns (the module's `halt_poll_ns`); 0: not at all.
    pub halt_poll_ns: u32,
    /// How long a waiter for a preemptable ticket lock waits per place before it competes, spins of its loop (ruling 8);
    /// `u32::MAX`: for ever.
    pub tau_spins: u32,
    /// Threads that use CPU time beside the VMs.
    pub cpu_hogs: u32,
    /// Guest tasks on each vCPU, 1 or more; each does the scenario's spins. They take spins at guest ticks.
    pub guest_tasks: u32,
    /// Each task touches a page that the host has to fetch every so many spins of its vCPU; 0: never.
    pub page_fault_every_iterations: u32,
    /// How long the host fetches a page, ns.
    pub page_fetch_ns: u64,
    /// Whether the guest is notified meanwhile (`KVM_FEATURE_ASYNC_PF`) or its vCPU sleeps.
    pub async_page_faults: bool,
    /// What paravirtual functions guests have.
    pub paravirtual: Paravirtual,
    /// eCS's extra schedule for guests with pv pages, and whether it is given back at unlock (ours) or not (the paper's
    /// form); `None`: none. Not with the scheduler `steer`, whose policies decide.
    pub ecs: Option<bool>,
    /// Where the scheduler is `steer`.
    pub steering: SteeringModel,
}

/// Spins that a waiter spins before it halts or asks for help, where its guest has a pv page (`spin_count` of `abi/guest/pv_page.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpinCount {
    /// The host says nothing: the guest's own.
    #[default]
    Own,
    /// Always so many.
    Fixed(u32),
    /// APPLE's, whose epochs are of the waits that the guest ended (`policy/model/spin_threshold.h`).
    Apple(AppleRule),
}

impl SpinCount {
    /// A number of spins, or `apple` as `unspin steer` takes it, with the paper's parameters as for AMD's window or with others.
    pub fn from_word(word: &str) -> Option<SpinCount> {
        if let Ok(WindowPolicy::Apple(numbers)) = word.parse() {
            let rule = match numbers {
                None => Some(AppleRule::new(Vendor::Amd)),
                Some(of) => AppleRule::with(of.initial, of.lower, of.upper, of.delta),
            };
            return rule.map(SpinCount::Apple);
        }
        let spins = word.parse::<u32>().ok();
        let fixed = spins.filter(|spins| (1..u32::MAX).contains(spins));
        fixed.map(SpinCount::Fixed)
    }
}

/// What a guest has that makes its interrupts cheaper (KVM's paravirtual features, Linux 5.10 and later); by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paravirtual {
    /// A shootdown leaves out descheduled vCPUs: their flush is done when they are entered (`KVM_FEATURE_PV_TLB_FLUSH`).
    pub tlb_flush: bool,
    /// After a function call was sent, the first receiver that is descheduled is yielded to (`KVM_FEATURE_PV_SCHED_YIELD`).
    pub sched_yield: bool,
    /// Interrupts for several receivers take one hypercall (`KVM_FEATURE_PV_SEND_IPI`), otherwise an exit for each sixteen: an
    /// x2APIC cluster.
    pub send_ipi: bool,
}

/// How our scheduler knows and acts: parameters measured in the testbed, and its policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringModel {
    /// Which policies are asked.
    pub policies: Policies,
    /// How much older facts are than they would be at best, ns.
    pub facts_age_ns: u32,
    /// How often a fact is unknown because its event was lost, parts per million.
    pub lost_ppm: u32,
    /// Extra time ends at ticks only: a build of the kernel without `scx_bpf_kick_cpu` (docs/decisions/design.md#kernel-builds).
    pub tick_only: bool,
    /// Between two looks at a borrower that gives no pv pages, ns: `LOOK_NS` of bpf/scheduler/guest/vcpus.bpf.h.
    pub poll_period_ns: u64,
}

impl Default for SteeringModel {
    fn default() -> SteeringModel {
        SteeringModel {
            policies: Policies::REFUSE_YIELDS,
            facts_age_ns: 0,
            lost_ppm: 0,
            tick_only: false,
            poll_period_ns: 200_000,
        }
    }
}

impl LabHost {
    /// KVM's defaults on that many pCPUs, on AMD: `pause_filter_count` 3,000, threshold 128 cycles (docs/facts.md#parameters); no halt polling.
    pub fn new(topology: Topology) -> LabHost {
        let vendor = Vendor::Amd;
        LabHost {
            topology,
            vendor,
            window: WindowRule::new(Control::Kvm, vendor),
            gap_cycles: DEFAULT_GAP_CYCLES,
            window_unit_ps: 28_000,
            spin_count: SpinCount::Own,
            candidates: CandidateRule::Kvm7_2,
            ignore_reschedules: false,
            halt_poll_ns: 0,
            tau_spins: raw::UNSPIN_LAB_TAU_SPINS,
            cpu_hogs: 0,
            guest_tasks: 1,
            page_fault_every_iterations: 0,
            page_fetch_ns: 100_000,
            async_page_faults: true,
            paravirtual: Paravirtual::default(),
            ecs: None,
            steering: SteeringModel::default(),
        }
    }
}

impl<O: Observer> World<O> {
    /// Spins that a waiter of that vCPU spins; `own`: its guest's.
    pub(crate) fn spin_count(&self, vcpu: usize, own: u32) -> u32 {
        let notified = self.vcpus[vcpu].notified_spin_count;
        if notified == 0 { own } else { notified }
    }

    /// The vCPU enters its guest: what its page says from now on.
    pub(crate) fn notify_spin_count(&mut self, vcpu: usize) {
        let vm = &self.vms[self.vcpus[vcpu].vm as usize];
        self.vcpus[vcpu].notified_spin_count = match self.host.spin_count {
            _ if !vm.pv_page => 0,
            SpinCount::Own => 0,
            SpinCount::Fixed(spins) => spins,
            SpinCount::Apple(_) => vm.apple.window(),
        };
    }

    /// The vCPU leaves its guest like that; what the host does about it is handling until it enters again or leaves its pCPU.
    pub(crate) fn threshold_exit(&mut self, vcpu: usize, exit: WaitExit) {
        let known = &mut self.vcpus[vcpu];
        let waits = known.asks.is_some();
        if known.notified_spin_count == 0 || !SpinBound::Threshold.counts(exit, Some(waits)) {
            return;
        }
        known.ends_wait = true;
        known.statistics.waits_ended += 1;
        known.statistics.waited_spins += u64::from(known.notified_spin_count);
        let (vm, spins) = (known.vm as usize, known.notified_spin_count);
        if let SpinCount::Apple(_) = self.host.spin_count {
            // A spin, as the machine has it: a host would measure it by the quickest wait.
            let unit_ps = self.turns_ns(vcpu, TURNS_TIMED) * 1_000 / u64::from(TURNS_TIMED);
            self.apple_exit(vm, spins, unit_ps);
        }
    }

    /// Of each VM: its threshold now, and how many epochs of APPLE are over.
    pub fn thresholds(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let notified = |vm: &crate::world::VmState| match self.host.spin_count {
            SpinCount::Own => 0,
            SpinCount::Fixed(spins) => spins,
            SpinCount::Apple(_) => vm.apple.window(),
        };
        self.vms.iter().map(move |vm| (notified(vm), vm.epochs))
    }
}

/// Enough for a whole number of PAUSEs and nanoseconds in any scenario.
const TURNS_TIMED: u32 = 1 << 20;
