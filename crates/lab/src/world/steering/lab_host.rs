// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of a simulated host: its pCPUs, its pause-loop hardware, its hypervisor, and what it offers its
//! guests.
//!
//! And spin thresholds: which one is written into guests' pv pages, and which exits end their waits: as
//! `bpf/window/notify.bpf.h`, by the rules of `policy/model/spin_threshold.h`.

use unspin_policy::{
    AppleRule, CandidateRule, Control, DEFAULT_GAP_CYCLES, SpinBound, Vendor, WaitExit, WindowRule,
    steering::{Policies, WindowPolicy},
};

use crate::{
    guest::raw, host_noise::NoiseModel, topology::Topology, trace_event::Observer, world::World,
};

/// The host of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabHost {
    /// Its pCPUs.
    pub topology: Topology,
    /// The vendor of its pause-loop hardware.
    pub vendor: Vendor,
    /// How the window of pause-loop exits is set, and its initial value.
    pub window: WindowRule,
    /// `pause_filter_thresh`, `ple_gap`, TSC cycles.
    pub gap_cycles: u32,
    /// The time of one unit of the window, ps, as a host assumes it for APPLE.
    pub window_unit_ps: u64,
    /// The spin threshold in guests' pv pages.
    pub spin_count: SpinCount,
    /// The rule by which `kvm_vcpu_on_spin()` chooses.
    pub candidates: CandidateRule,
    /// `ignore_vectors` of strict boost: vCPUs that were sent only a reschedule do not count as receivers.
    pub ignore_reschedules: bool,
    /// How long a vCPU without work may poll before it sleeps, ns (the module's `halt_poll_ns`); 0: not at all.
    pub halt_poll_ns: u32,
    /// tau of preemptable ticket locks: how long a waiter waits per place before it competes, spins of its loop
    /// (ruling 8); `u32::MAX`: without a bound.
    pub tau_spins: u32,
    /// Number of threads that use CPU time beside the VMs.
    pub cpu_hogs: u32,
    /// Number of guest tasks on each vCPU, 1 or more; each does the scenario's iterations. They are switched at guest
    /// ticks.
    pub guest_tasks: u32,
    /// Each vCPU touches a page that the host must fetch every so many iterations; 0: never.
    pub page_fault_every_iterations: u32,
    /// How long the host takes to fetch a page, ns.
    pub page_fetch_ns: u64,
    /// Whether the guest is notified meanwhile (`KVM_FEATURE_ASYNC_PF`), or its vCPU sleeps.
    pub async_page_faults: bool,
    /// The paravirtual functions of guests.
    pub paravirtual: Paravirtual,
    /// eCS's extra schedule for guests with pv pages, and whether it is given back at unlock (ours) or not (the paper's
    /// form); `None`: none. Not with the scheduler `steer`, whose policies decide.
    pub ecs: Option<bool>,
    /// What it does besides running vCPUs; `None`: only ticks.
    pub noise: Option<NoiseModel>,
    /// Whether ticks of pCPUs are spread over half a period (`skew_tick`, kernel/time/tick-sched.c, Linux 7.2).
    pub skew_tick: bool,
    /// The parameters of the scheduler `steer`.
    pub steering: SteeringModel,
}

/// The spin threshold in a guest's pv page (`spin_count` of `abi/guest/pv_page.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpinCount {
    /// None: guests use their own.
    #[default]
    Own,
    /// A fixed one.
    Fixed(u32),
    /// APPLE's, whose epochs consist of waits that the guest ended (`policy/model/spin_threshold.h`).
    Apple(AppleRule),
}

impl SpinCount {
    /// A number of spins, or `apple` as for `unspin steer`, with the paper's parameters for AMD's window or with
    /// others.
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

/// Features that make a guest's interrupts cheaper (KVM's paravirtual features, Linux 5.10 and later); by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paravirtual {
    /// A shootdown omits descheduled vCPUs, which flush when they are entered (`KVM_FEATURE_PV_TLB_FLUSH`).
    pub tlb_flush: bool,
    /// After a function call is sent, the sender yields to the first descheduled receiver
    /// (`KVM_FEATURE_PV_SCHED_YIELD`).
    pub sched_yield: bool,
    /// Interrupts to several receivers take one hypercall (`KVM_FEATURE_PV_SEND_IPI`); otherwise one exit for each
    /// sixteen receivers, an x2APIC cluster.
    pub send_ipi: bool,
}

/// The parameters of unspin's scheduler, measured in the testbed, and its policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringModel {
    /// The policies of every VM; where each VM's are chosen by trial, the first ones.
    pub policies: Policies,
    /// Whether they are chosen by trial: the policy `auto`.
    pub auto: bool,
    /// How much older facts are than necessary, ns.
    pub facts_age_ns: u32,
    /// How often a fact is unknown because its event was lost, ppm.
    pub lost_ppm: u32,
    /// Borrowed time ends at ticks only: a kernel built without `scx_bpf_kick_cpu`
    /// (docs/decisions/design.md#kernel-builds).
    pub tick_only: bool,
    /// Time between two polls of a borrower without a pv page, ns: `POLL_NS` of bpf/scheduler/boundary.bpf.h.
    pub poll_period_ns: u64,
}

impl Default for SteeringModel {
    fn default() -> SteeringModel {
        SteeringModel {
            policies: Policies::REFUSE_YIELDS,
            auto: false,
            facts_age_ns: 0,
            lost_ppm: 0,
            tick_only: false,
            poll_period_ns: 200_000,
        }
    }
}

impl LabHost {
    /// KVM's defaults on that many pCPUs of AMD: `pause_filter_count` 3,000, threshold 128 cycles
    /// (docs/facts.md#parameters); no halt polling.
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
            noise: None,
            skew_tick: false,
            steering: SteeringModel::default(),
        }
    }
}

impl<O: Observer> World<O> {
    /// How many spins a waiter of that vCPU spins; `own`: its guest's own threshold.
    pub(crate) fn spin_count(&self, vcpu: usize, own: u32) -> u32 {
        let notified = self.vcpus[vcpu].notified_spin_count;
        if notified == 0 { own } else { notified }
    }

    /// The vCPU enters its guest: its pv page has the VM's present threshold from now on.
    pub(crate) fn notify_spin_count(&mut self, vcpu: usize) {
        let vm = &self.vms[self.vcpus[vcpu].vm as usize];
        self.vcpus[vcpu].notified_spin_count = match self.host.spin_count {
            _ if !vm.pv_page => 0,
            SpinCount::Own => 0,
            SpinCount::Fixed(spins) => spins,
            SpinCount::Apple(_) => vm.apple.window(),
        };
    }

    /// The vCPU leaves its guest by this kind of exit; if it counts, the host's time is handling until the vCPU enters
    /// again or is switched out.
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
            // The time of a spin, as of this machine: a host would measure it by the quickest wait.
            let unit_ps = self.spins_ns(vcpu, SPINS_TIMED) * 1_000 / u64::from(SPINS_TIMED);
            self.apple_exit(vm, spins, unit_ps);
        }
    }

    /// By VM: its threshold now, and its number of ended APPLE epochs.
    pub fn thresholds(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let notified = |vm: &crate::world::VmState| match self.host.spin_count {
            SpinCount::Own => 0,
            SpinCount::Fixed(spins) => spins,
            SpinCount::Apple(_) => vm.apple.window(),
        };
        self.vms.iter().map(move |vm| (notified(vm), vm.epochs))
    }
}

/// Long enough for a whole number of PAUSEs and nanoseconds in any scenario.
const SPINS_TIMED: u32 = 1 << 20;
