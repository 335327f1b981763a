// SPDX-License-Identifier: MIT OR Apache-2.0
//! The join of ground truth and switch trace, case by case.

mod waits;

use unspin_abi as abi;
use unspin_events::{
    GuestWait, SwitchTrace, ThreadState, WaitError,
    ground_truth::{self, Table1},
};
use waits::{NOBODY, clock, event, raw_wait, switch_in, switch_out};

fn lock_wait(vcpu: u16, begin: u64, stall: u64, end: u64, holder: u8) -> GuestWait {
    let mut raw = raw_wait(begin, stall, end, 0, holder);
    raw.waiting_at_stall = 1 << vcpu;
    GuestWait::from_abi(vcpu, 4, &raw).expect("in range")
}

/// vCPU 1 is off its pCPU from TSC 3,000 to 5,000 (6,000 to 7,000 ns); the others run.
fn trace() -> SwitchTrace {
    let events = [
        event(1, 6_000, switch_out(true)),
        event(1, 7_000, switch_in()),
    ];
    SwitchTrace::new(3, [0, 1, 2, 3], &events)
}

#[test]
fn a_preempted_holder_is_lhp() {
    let mut wait = lock_wait(0, 2_900, 4_000, 5_500, 1);
    let ground_truth = ground_truth::join(&[wait], &clock(), &trace());
    assert_eq!(ground_truth.lock_stalls.holder_off_cpu, 1);
    assert_eq!(ground_truth.lock_stalls.total(), 1);
    assert_eq!(ground_truth.holder_flag.clear_but_off_cpu, 1);
    wait.stall.as_mut().expect("it stalled").preempted = 1 << 1;
    let ground_truth = ground_truth::join(&[wait], &clock(), &trace());
    assert_eq!(ground_truth.holder_flag.set_and_off_cpu, 1);
    assert_eq!(ground_truth.holder_flag.disagreements(), 0);
}

#[test]
fn a_slow_holder_is_not_lhp() {
    let ground_truth =
        ground_truth::join(&[lock_wait(0, 2_900, 4_000, 5_500, 2)], &clock(), &trace());
    assert_eq!(ground_truth.lock_stalls.holder_running, 1);
    assert_eq!(ground_truth.holder_flag.clear_and_running, 1);
}

#[test]
fn a_preempted_next_waiter_is_lwp_and_a_deeper_one_is_apart() {
    // The lock is free at 4,000; vCPU 1 (descheduled) gets it at 5,100, vCPU 0 only at 5,200.
    let next = lock_wait(1, 2_500, 0, 5_100, NOBODY);
    let mut stalled = lock_wait(0, 2_900, 4_000, 5_200, NOBODY);
    stalled.stall.as_mut().expect("it stalled").waiting = 0b0111;
    let ground_truth = ground_truth::join(&[stalled, next], &clock(), &trace());
    assert_eq!(ground_truth.lock_stalls.next_waiter_off_cpu, 1);
    assert_eq!(ground_truth.lock_stalls.unheld(), 1);
    assert_eq!(ground_truth.deeper_waiters_off_cpu, 0);
    // vCPU 2 is next instead: vCPU 1 waits deeper in the queue.
    let first = lock_wait(2, 2_400, 0, 4_100, NOBODY);
    let ground_truth = ground_truth::join(&[stalled, next, first], &clock(), &trace());
    assert_eq!(ground_truth.lock_stalls.next_waiter_running, 1);
    assert_eq!(ground_truth.deeper_waiters_off_cpu, 1);
    assert_eq!(ground_truth.stalls_with_deeper_waiter_off_cpu, 1);
}

#[test]
fn a_newcomer_who_overtakes_is_neither() {
    let stalled = lock_wait(0, 2_900, 4_000, 9_000, NOBODY);
    let newcomer = lock_wait(1, 5_000, 0, 5_001, NOBODY);
    let ground_truth = ground_truth::join(&[stalled, newcomer], &clock(), &trace());
    assert_eq!(ground_truth.lock_stalls.next_came_later, 1);
}

#[test]
fn the_moment_of_the_stall_itself_counts() {
    let stalled = lock_wait(0, 2_900, 4_000, 9_000, NOBODY);
    // Acquired at that very cycle: the next one, before vCPU 1, which is off its pCPU.
    let now = lock_wait(2, 2_400, 0, 4_000, NOBODY);
    let later = lock_wait(1, 2_500, 0, 5_100, NOBODY);
    let ground_truth = ground_truth::join(&[stalled, now, later], &clock(), &trace());
    assert_eq!(ground_truth.lock_stalls.next_waiter_running, 1);
    // Came at that very cycle: it waits already.
    let came = lock_wait(1, 4_000, 0, 5_100, NOBODY);
    let ground_truth = ground_truth::join(&[stalled, came], &clock(), &trace());
    assert_eq!(ground_truth.lock_stalls.next_waiter_off_cpu, 1);
}

#[test]
fn a_trace_knows_its_vm_and_what_came_before_the_first_event() {
    let mut other = event(0, 5_500, switch_out(true));
    other.vm = Some(4);
    let mut nobody = event(0, 5_600, switch_out(false));
    nobody.vm = None;
    let events = [
        other,
        nobody,
        event(2, 6_000, switch_in()),
        event(3, 6_000, switch_out(false)),
    ];
    let trace = SwitchTrace::new(3, [0], &events);
    let at = |vcpu, time_ns| trace.state_at(vcpu, time_ns);
    assert_eq!(at(0, 7_000), Some(ThreadState::Running));
    assert_eq!(at(1, 7_000), None);
    assert_eq!(at(2, 5_999), Some(ThreadState::Runnable));
    assert_eq!(at(2, 6_000), Some(ThreadState::Running));
    assert_eq!(at(3, 5_999), Some(ThreadState::Running));
    assert_eq!(at(3, 6_000), Some(ThreadState::Asleep));
}

#[test]
fn unobserved_vcpus_are_said_to_be() {
    let trace = SwitchTrace::new(3, [0], &[]);
    let ground_truth =
        ground_truth::join(&[lock_wait(0, 2_900, 4_000, 5_500, 1)], &clock(), &trace);
    assert_eq!(ground_truth.lock_stalls.unobserved, 1);
    assert_eq!(ground_truth.holder_flag, Default::default());
}

#[test]
fn shootdowns_ask_for_their_receivers() {
    let mut raw = raw_wait(2_900, 4_000, 5_500, 0, NOBODY);
    raw.kind = abi::UNSPIN_WAIT_SHOOTDOWN as u8;
    raw.targets = 0b1110;
    raw.waiting_at_stall = 0b0110;
    let all = GuestWait::from_abi(0, 4, &raw).expect("in range");
    raw.targets = 0b1100;
    let others = GuestWait::from_abi(0, 4, &raw).expect("in range");
    raw.targets = 0b1110;
    raw.waiting_at_stall = 0b1000;
    let answered = GuestWait::from_abi(0, 4, &raw).expect("in range");
    let ground_truth = ground_truth::join(&[all, others, answered], &clock(), &trace());
    assert_eq!(ground_truth.shootdown_stalls_receiver_off_cpu, 1);
    assert_eq!(ground_truth.shootdown_stalls_receivers_running, 2);
    assert_eq!(ground_truth.lock_stalls.total(), 0);
}

#[test]
fn hostile_records_are_refused_by_name() {
    let check = |raw: &abi::unspin_guest_wait| GuestWait::from_abi(0, 4, raw).map(|_| ());
    let good = raw_wait(10, 20, 30, 0, 3);
    assert_eq!(check(&good), Ok(()));
    assert_eq!(
        check(&abi::unspin_guest_wait { kind: 0, ..good }),
        Err(WaitError::Incomplete)
    );
    assert_eq!(
        check(&abi::unspin_guest_wait { kind: 7, ..good }),
        Err(WaitError::Kind)
    );
    assert_eq!(check(&raw_wait(10, 20, 30, 0, 4)), Err(WaitError::Vcpu));
    assert_eq!(check(&raw_wait(10, 20, 30, 0, 254)), Err(WaitError::Vcpu));
    assert_eq!(check(&raw_wait(10, 20, 30, 0, NOBODY)), Ok(()));
    assert_eq!(check(&raw_wait(30, 20, 10, 0, 1)), Err(WaitError::Times));
    assert_eq!(check(&raw_wait(10, 31, 30, 0, 1)), Err(WaitError::Times));
    assert_eq!(check(&raw_wait(10, 9, 30, 0, 1)), Err(WaitError::Times));
    assert_eq!(GuestWait::from_abi(4, 4, &good), Err(WaitError::Vcpu));
    assert_eq!(GuestWait::from_abi(64, 1_000, &good), Err(WaitError::Vcpu));
    let mut shootdown = abi::unspin_guest_wait {
        kind: 2,
        targets: 1 << 4,
        ..good
    };
    assert_eq!(check(&shootdown), Err(WaitError::Vcpu));
    shootdown.waiting_at_stall = 1 << 63;
    shootdown.targets = 0xf;
    assert_eq!(check(&shootdown), Err(WaitError::Vcpu));
    shootdown.waiting_at_stall = 0xf;
    assert_eq!(check(&shootdown), Ok(()));
}

#[test]
fn table_1_needs_stalls_for_a_share() {
    let table = |stalls, stalls_unheld| Table1 {
        acquisitions: 9,
        stalls,
        stalls_unheld,
    };
    assert_eq!(table(0, 0).unheld_share(), None);
    assert_eq!(table(8, 6).unheld_share(), Some(0.75));
}
