// SPDX-License-Identifier: MIT OR Apache-2.0
//! What guests with pv pages are told of their spin threshold, and which exits end their waits: `bpf/window/notify.bpf.h` by the
//! rules of `policy/model/spin_threshold.h`.

use unspin_policy::{SpinBound, WaitExit};

use super::lab_host::SpinCount;
use crate::trace_event::Observer;
use crate::world::World;

impl<O: Observer> World<O> {
    /// Spins that a waiter of that vCPU spins; `own`: its guest's.
    pub(crate) fn spin_count(&self, vcpu: usize, own: u32) -> u32 {
        let told = self.vcpus[vcpu].notified_spin_count;
        if told == 0 { own } else { told }
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
        let told = |vm: &crate::world::VmState| match self.host.spin_count {
            SpinCount::Own => 0,
            SpinCount::Fixed(spins) => spins,
            SpinCount::Apple(_) => vm.apple.window(),
        };
        self.vms.iter().map(move |vm| (told(vm), vm.epochs))
    }
}

/// Enough for a whole number of PAUSEs and nanoseconds in any scenario.
const TURNS_TIMED: u32 = 1 << 20;
