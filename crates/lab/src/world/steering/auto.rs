// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy `auto`: each VM's useful time by its exits and entries, as bpf/useful_time takes it, and its choice epoch by epoch, as
//! crates/agent/src/auto makes it. The functions of `policy/auto` decide in both.
//!
//! Difference from the kernel: a guest waits in two places of its code only, for locks in one and for answers in the other.

use std::time::Duration;

use unspin_policy::{
    SpinPlaces, Vendor,
    auto::{
        AUTO_EPOCH_NS, AUTO_SETTLE_NS, Auto as Choice, AutoStep, SpinMeter, Stretch, StretchEnd,
        UsefulTime, auto_seed,
    },
};
use unspin_scenario::Scenario;

use crate::{
    engine::NEVER_NS,
    trace_event::Observer,
    world::{World, vcpu::Base},
};

/// Where guests' code lies: waiting for a lock, waiting for answers, all else.
const LOCK_LOOP: u64 = 0x1000;
const ANSWER_LOOP: u64 = 0x2000;
const ELSEWHERE: u64 = 0x3000;

/// The choices of all VMs.
pub(crate) struct Auto {
    /// When something is to be done next, ns.
    next_ns: u64,
    /// The epoch is measured since then, ns; `None`: sets have just been changed.
    since_ns: Option<u64>,
    vms: Vec<Chosen>,
    /// By vCPU.
    meters: Vec<SpinMeter>,
    steps: Vec<AutoStep>,
}

struct Chosen {
    choice: Choice,
    places: SpinPlaces,
    sums: UsefulTime,
    /// The sums when measuring began.
    at_begin: UsefulTime,
}

impl Auto {
    pub(crate) fn new(scenario: &Scenario, vms: usize, vcpus: usize) -> Auto {
        let of_vm = |vm| Chosen {
            choice: Choice::new(auto_seed(scenario.seed, vm)),
            places: SpinPlaces::default(),
            sums: UsefulTime::default(),
            at_begin: UsefulTime::default(),
        };
        Auto {
            next_ns: AUTO_SETTLE_NS,
            since_ns: None,
            vms: (0..vms as u32).map(of_vm).collect(),
            meters: vec![SpinMeter::default(); vcpus],
            steps: Vec::new(),
        }
    }

    pub(crate) fn steps(&self) -> &[AutoStep] {
        &self.steps
    }

    /// What has to be done now is done; returns whether sets may have changed.
    fn advance(&mut self) -> bool {
        let now_ns = self.next_ns;
        let Some(since_ns) = self.since_ns.take() else {
            for vm in &mut self.vms {
                vm.at_begin = vm.sums;
            }
            self.since_ns = Some(now_ns);
            self.next_ns = now_ns + AUTO_EPOCH_NS - AUTO_SETTLE_NS;
            return false;
        };
        let (at, length) = (
            Duration::from_nanos(now_ns),
            Duration::from_nanos(now_ns - since_ns),
        );
        for (number, vm) in self.vms.iter_mut().enumerate() {
            let grown = vm.sums.since(&vm.at_begin);
            self.steps
                .push(vm.choice.step(number as u32, at, length, &grown));
        }
        self.next_ns = now_ns + AUTO_SETTLE_NS;
        true
    }
}

impl<O: Observer> World<O> {
    /// Chooses policies if that is due by then; time advances to when it was.
    pub(crate) fn choose_by(&mut self, until_ns: u64) -> bool {
        let Some(auto) = self.auto.as_mut() else {
            return false;
        };
        if auto.next_ns > until_ns || until_ns == NEVER_NS {
            return false;
        }
        self.now_ns = auto.next_ns;
        if auto.advance() {
            let sets = auto.vms.iter().map(|vm| vm.choice.set_now());
            let sets: Vec<_> = sets.collect();
            for (vm, set) in sets.into_iter().enumerate() {
                if self.vms[vm].policies != set.policies() {
                    self.set_policies(vm, set.policies());
                }
            }
        }
        true
    }

    /// The vCPU enters its guest.
    #[inline]
    pub(crate) fn meter_enter(&mut self, vcpu: usize) {
        if let Some(auto) = &mut self.auto {
            auto.meters[vcpu].enter(self.now_ns);
        }
    }

    /// The vCPU leaves its guest, where it still is.
    #[inline]
    pub(crate) fn meter_exit(&mut self, vcpu: usize, end: StretchEnd) {
        let Some(auto) = &mut self.auto else {
            return;
        };
        let known = &self.vcpus[vcpu];
        let waits = known.handler.is_none() && matches!(known.base, Base::Spin(_));
        let place = match (waits, known.asks) {
            (true, Some(_)) => LOCK_LOOP,
            (true, None) => ANSWER_LOOP,
            (false, _) => ELSEWHERE,
        };
        let sees = self.host.vendor == Vendor::Amd;
        let user = known.user && known.handler.is_none();
        let stretch = Stretch {
            now_ns: self.now_ns,
            end,
            pointer: sees.then_some(place),
            space: (sees && user).then_some(1),
            window: Some(known.pauses.hardware.window()),
        };
        let vm = &mut auto.vms[known.vm as usize];
        auto.meters[vcpu].exit(&mut vm.places, &mut vm.sums, &stretch);
    }
}
