// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ground truth: why a vCPU stalled, from the guest's log of waits and the host's switch trace together.
//!
//! The guest knows who held which lock and who waited; the host knows who had a pCPU. Only both know that a holder was
//! preempted (LHP), or the waiter whose turn it was (LWP). Ruling 10: a stall is a wait of more than 2,048 spins; LWP if
//! nobody holds the lock at that moment, LHP otherwise: that is what a guest can tell by itself ([`Table1`]), and it
//! takes a holder who is merely slow for a preempted one.
//!
//! The switch trace: of one VM, which of its vCPUs was on a pCPU when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Event, TscClock, What,
    guest_log::{GuestWait, Stall, WaitKind},
};

/// Why the lock stalls of one VM happened: each is counted in exactly one of the first group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockStalls {
    /// LHP: somebody held the lock and was off its pCPU.
    pub holder_off_cpu: u64,
    /// Somebody held the lock and was running: contention, no preemption.
    pub holder_running: u64,
    /// LWP: the lock was free, and the waiter that got it next was off its pCPU.
    pub next_waiter_off_cpu: u64,
    /// The lock was free, and the waiter that got it next was running (often the one that stalled).
    pub next_waiter_running: u64,
    /// The lock was free, and one that came later got it next: an unfair lock.
    pub next_came_later: u64,
    /// The lock was free, and the log does not say who got it next: it was full, or the run was over.
    pub next_unknown: u64,
    /// The vCPU in question was not observed by the host.
    pub unobserved: u64,
}

/// How KVM's steal-time flag `preempted` of the holder compares with the trace, at lock stalls with a holder who was
/// observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlagAgreement {
    /// Set, and off its pCPU.
    pub set_and_off_cpu: u64,
    /// Clear, and running.
    pub clear_and_running: u64,
    /// Set, but running.
    pub set_but_running: u64,
    /// Clear, but off its pCPU: KVM sets the flag at some exits only.
    pub clear_but_off_cpu: u64,
}

/// Ground truth of one VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroundTruth {
    /// Waits that were joined.
    pub waits: u64,
    /// Lock stalls, by cause.
    pub lock_stalls: LockStalls,
    /// The holder's flag against the trace.
    pub holder_flag: FlagAgreement,
    /// Lock stalls during which a waiter further back in the queue was off its pCPU (not the one that is next).
    pub stalls_with_deeper_waiter_off_cpu: u64,
    /// Such waiters, added up over all lock stalls.
    pub deeper_waiters_off_cpu: u64,
    /// Shootdowns that stalled with a receiver that had not answered and was off its pCPU at that moment.
    pub shootdown_stalls_receiver_off_cpu: u64,
    /// Shootdowns that stalled with all such receivers running.
    pub shootdown_stalls_receivers_running: u64,
}

/// Table 1 of VEE'13 as the guest can count it by itself (ruling 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table1 {
    /// Acquisitions: column 2.
    pub acquisitions: u64,
    /// Stalls: Nh + Nw.
    pub stalls: u64,
    /// Of them with nobody holding the lock: Nw.
    pub stalls_unheld: u64,
}

impl Table1 {
    /// Nw / (Nh + Nw), the paper's share of lock-waiter preemptions; `None` without stalls.
    pub fn unheld_share(&self) -> Option<f64> {
        (self.stalls > 0).then(|| self.stalls_unheld as f64 / self.stalls as f64)
    }
}

impl LockStalls {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.holder_off_cpu
            + self.holder_running
            + self.next_waiter_off_cpu
            + self.next_waiter_running
            + self.next_came_later
            + self.next_unknown
            + self.unobserved
    }

    /// Table 1 as the joined stalls give it: the lock was free in all but the first two causes. `unobserved` counts
    /// stalls of both sorts and is left out.
    pub fn unheld(&self) -> u64 {
        self.next_waiter_off_cpu
            + self.next_waiter_running
            + self.next_came_later
            + self.next_unknown
    }
}

/// Joins the waits of one VM with its switch trace. `clock` spins the guest's TSC values into the trace's time. The waits
/// may come in any order; "the waiter that got it next" needs a log without gaps (`log_minimum_spins = 0`).
pub fn join(waits: &[GuestWait], clock: &TscClock, trace: &SwitchTrace) -> GroundTruth {
    let index = Index::new(waits);
    let mut ground_truth = GroundTruth {
        waits: waits
            .iter()
            .filter(|wait| wait.kind != WaitKind::Answer)
            .count() as u64,
        ..GroundTruth::default()
    };
    for wait in waits {
        let Some(stall) = wait.stall else { continue };
        let time_ns = clock.ns(stall.tsc);
        let off_cpu = |vcpu: u16| {
            trace
                .state_at(vcpu, time_ns)
                .map(|state| state.is_off_cpu())
        };
        match wait.kind {
            WaitKind::Lock => lock_stall(&mut ground_truth, &index, wait, stall, &off_cpu),
            WaitKind::Shootdown => shootdown_stall(&mut ground_truth, wait, stall, &off_cpu),
            WaitKind::Answer => {} // never stalls
        }
    }
    ground_truth
}

fn lock_stall(
    ground_truth: &mut GroundTruth,
    index: &Index<'_>,
    wait: &GuestWait,
    stall: Stall,
    off_cpu: &dyn Fn(u16) -> Option<bool>,
) {
    let causes = &mut ground_truth.lock_stalls;
    let next = index.next_acquisition(wait.lock, stall.tsc);
    let cause = match (stall.holder, next) {
        (Some(holder), _) => match off_cpu(holder) {
            Some(true) => &mut causes.holder_off_cpu,
            Some(false) => &mut causes.holder_running,
            None => &mut causes.unobserved,
        },
        (None, None) => &mut causes.next_unknown,
        (None, Some(next)) if next.begin_tsc > stall.tsc => &mut causes.next_came_later,
        (None, Some(next)) => match off_cpu(next.vcpu) {
            Some(true) => &mut causes.next_waiter_off_cpu,
            Some(false) => &mut causes.next_waiter_running,
            None => &mut causes.unobserved,
        },
    };
    *cause += 1;
    if let Some((holder, off)) = stall
        .holder
        .and_then(|holder| Some((holder, off_cpu(holder)?)))
    {
        // In range: GuestWait holds no vCPU number above 63.
        let set = stall.preempted >> holder & 1 == 1;
        *ground_truth.holder_flag.cell(set, off) += 1;
    }
    let deeper = vcpus_in(stall.waiting)
        .filter(|&vcpu| vcpu != wait.vcpu && next.is_none_or(|next| next.vcpu != vcpu))
        .filter(|&vcpu| off_cpu(vcpu) == Some(true))
        .count() as u64;
    ground_truth.deeper_waiters_off_cpu += deeper;
    ground_truth.stalls_with_deeper_waiter_off_cpu += u64::from(deeper > 0);
}

/// The numbers of the bits that are set, below 64.
fn vcpus_in(mask: u64) -> impl Iterator<Item = u16> {
    (0..64).filter(move |vcpu| mask >> vcpu & 1 == 1)
}

fn shootdown_stall(
    ground_truth: &mut GroundTruth,
    wait: &GuestWait,
    stall: Stall,
    off_cpu: &dyn Fn(u16) -> Option<bool>,
) {
    let late = wait.targets & stall.waiting;
    let receiver_off = vcpus_in(late).any(|vcpu| off_cpu(vcpu) == Some(true));
    if receiver_off {
        ground_truth.shootdown_stalls_receiver_off_cpu += 1;
    } else {
        ground_truth.shootdown_stalls_receivers_running += 1;
    }
}

impl FlagAgreement {
    /// Stalls at which flag and trace disagree.
    pub fn disagreements(&self) -> u64 {
        self.set_but_running + self.clear_but_off_cpu
    }

    fn cell(&mut self, set: bool, off_cpu: bool) -> &mut u64 {
        match (set, off_cpu) {
            (true, true) => &mut self.set_and_off_cpu,
            (false, false) => &mut self.clear_and_running,
            (true, false) => &mut self.set_but_running,
            (false, true) => &mut self.clear_but_off_cpu,
        }
    }
}

/// The lock waits by (lock, end, vCPU): finds who got a lock next.
struct Index<'a>(Vec<&'a GuestWait>);

impl<'a> Index<'a> {
    fn new(waits: &'a [GuestWait]) -> Index<'a> {
        let mut locks: Vec<&GuestWait> = waits
            .iter()
            .filter(|wait| wait.kind == WaitKind::Lock)
            .collect();
        locks.sort_by_key(|wait| (wait.lock, wait.end_tsc, wait.vcpu, wait.begin_tsc));
        Index(locks)
    }

    /// The first acquisition of that lock at or after `tsc`.
    fn next_acquisition(&self, lock: u16, tsc: u64) -> Option<&'a GuestWait> {
        let first = self
            .0
            .partition_point(|wait| (wait.lock, wait.end_tsc) < (lock, tsc));
        self.0.get(first).copied().filter(|wait| wait.lock == lock)
    }
}

/// What a vCPU thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// On a pCPU.
    Running,
    /// Waiting for one: preempted, or it yielded, or it was just woken.
    Runnable,
    /// Halted, or waiting in user space.
    Asleep,
}

impl ThreadState {
    /// Whether the vCPU cannot execute a single instruction.
    pub fn is_off_cpu(self) -> bool {
        self != ThreadState::Running
    }
}

/// The states of one VM's vCPUs over time.
#[derive(Clone, Debug, Default)]
pub struct SwitchTrace {
    vcpus: BTreeMap<u16, Vec<(u64, ThreadState)>>,
}

impl SwitchTrace {
    /// From the events of VM `vm`; others are skipped. `observed` names its vCPUs: one of them that never switched ran
    /// all the time. Events of equal time keep the order in which they come.
    pub fn new<'a>(
        vm: u32,
        observed: impl IntoIterator<Item = u16>,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> SwitchTrace {
        let mut vcpus: BTreeMap<u16, Vec<(u64, ThreadState)>> = observed
            .into_iter()
            .map(|vcpu| (vcpu, Vec::new()))
            .collect();
        for event in events {
            let (Some(vcpu), true) = (event.vcpu, event.vm == Some(vm)) else {
                continue;
            };
            let state = match event.what {
                What::SwitchIn { .. } => ThreadState::Running,
                What::SwitchOut { runnable: true, .. } | What::SchedWakeup { .. } => {
                    ThreadState::Runnable
                }
                What::SwitchOut {
                    runnable: false, ..
                } => ThreadState::Asleep,
                _ => continue,
            };
            vcpus.entry(vcpu).or_default().push((event.time_ns, state));
        }
        for changes in vcpus.values_mut() {
            changes.sort_by_key(|&(time_ns, _)| time_ns);
        }
        SwitchTrace { vcpus }
    }

    /// What the vCPU was doing at `time_ns`; `None` if it was not observed. Before its first change it was doing what
    /// that change ended: it was running when it was first seen, so only a lost event makes that another state.
    pub fn state_at(&self, vcpu: u16, time_ns: u64) -> Option<ThreadState> {
        let changes = self.vcpus.get(&vcpu)?;
        let later = changes.partition_point(|&(at_ns, _)| at_ns <= time_ns);
        match later.checked_sub(1) {
            Some(last) => Some(changes[last].1),
            None => match changes.first() {
                Some((_, ThreadState::Running)) => Some(ThreadState::Runnable),
                _ => Some(ThreadState::Running),
            },
        }
    }
}
