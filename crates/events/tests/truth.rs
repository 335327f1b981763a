// SPDX-License-Identifier: MIT OR Apache-2.0
//! The join of ground truth and switch trace, against an oracle that looks at everything for every stall.

use proptest::prelude::*;
use unspin_abi as abi;
use unspin_events::{
    ClockSample, Event, GuestWait, SwitchTrace, ThreadState, TscClock, WaitError, WaitKind, What,
    truth::{self, Table1, Truth},
};

/// 2 cycles a nanosecond; TSC 1,000 is 5,000 ns.
fn clock() -> TscClock {
    let sample = |tsc, ns| ClockSample { tsc, ns };
    TscClock::new(sample(1_000, 5_000), sample(21_000, 15_000)).expect("both go forward")
}

fn event(vcpu: u16, time_ns: u64, what: What) -> Event {
    Event {
        time_ns,
        vm: Some(3),
        vcpu: Some(vcpu),
        thread: 100 + u32::from(vcpu),
        cpu: 0,
        what,
    }
}

fn switch_in() -> What {
    What::SwitchIn {
        previous_thread: 0,
        previous_vm: None,
    }
}

fn switch_out(runnable: bool) -> What {
    What::SwitchOut {
        next_thread: 0,
        next_vm: None,
        runnable,
    }
}

fn raw_wait(begin: u64, stall: u64, end: u64, lock: u16, holder: u8) -> abi::unspin_guest_wait {
    abi::unspin_guest_wait {
        begin_tsc: begin,
        end_tsc: end,
        released_tsc: end,
        stall_tsc: stall,
        lock,
        kind: abi::UNSPIN_WAIT_LOCK as u8,
        holder_at_stall: holder,
        ..Default::default()
    }
}

fn lock_wait(vcpu: u16, begin: u64, stall: u64, end: u64, holder: u8) -> GuestWait {
    let mut raw = raw_wait(begin, stall, end, 0, holder);
    raw.waiting_at_stall = 1 << vcpu;
    GuestWait::from_abi(vcpu, 4, &raw).expect("in range")
}

const NOBODY: u8 = abi::UNSPIN_NOBODY as u8;

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
    let truth = truth::join(&[wait], &clock(), &trace());
    assert_eq!(truth.lock_stalls.holder_off_cpu, 1);
    assert_eq!(truth.lock_stalls.total(), 1);
    assert_eq!(truth.holder_flag.clear_but_off_cpu, 1);
    wait.stall.as_mut().expect("it stalled").preempted = 1 << 1;
    let truth = truth::join(&[wait], &clock(), &trace());
    assert_eq!(truth.holder_flag.set_and_off_cpu, 1);
    assert_eq!(truth.holder_flag.disagreements(), 0);
}

#[test]
fn a_slow_holder_is_not_lhp() {
    let truth = truth::join(&[lock_wait(0, 2_900, 4_000, 5_500, 2)], &clock(), &trace());
    assert_eq!(truth.lock_stalls.holder_running, 1);
    assert_eq!(truth.holder_flag.clear_and_running, 1);
}

#[test]
fn a_preempted_next_waiter_is_lwp_and_a_deeper_one_is_apart() {
    // The lock is free at 4,000; vCPU 1 (descheduled) gets it at 5,100, vCPU 0 only at 5,200.
    let next = lock_wait(1, 2_500, 0, 5_100, NOBODY);
    let mut stalled = lock_wait(0, 2_900, 4_000, 5_200, NOBODY);
    stalled.stall.as_mut().expect("it stalled").waiting = 0b0111;
    let truth = truth::join(&[stalled, next], &clock(), &trace());
    assert_eq!(truth.lock_stalls.next_waiter_off_cpu, 1);
    assert_eq!(truth.lock_stalls.unheld(), 1);
    assert_eq!(truth.deeper_waiters_off_cpu, 0);
    // vCPU 2 is next instead: vCPU 1 waits deeper in the queue.
    let first = lock_wait(2, 2_400, 0, 4_100, NOBODY);
    let truth = truth::join(&[stalled, next, first], &clock(), &trace());
    assert_eq!(truth.lock_stalls.next_waiter_running, 1);
    assert_eq!(truth.deeper_waiters_off_cpu, 1);
    assert_eq!(truth.stalls_with_deeper_waiter_off_cpu, 1);
}

#[test]
fn a_newcomer_who_overtakes_is_neither() {
    let stalled = lock_wait(0, 2_900, 4_000, 9_000, NOBODY);
    let newcomer = lock_wait(1, 5_000, 0, 5_001, NOBODY);
    let truth = truth::join(&[stalled, newcomer], &clock(), &trace());
    assert_eq!(truth.lock_stalls.next_came_later, 1);
}

#[test]
fn the_moment_of_the_stall_itself_counts() {
    let stalled = lock_wait(0, 2_900, 4_000, 9_000, NOBODY);
    // Acquired at that very cycle: the next one, before vCPU 1, which is off its pCPU.
    let now = lock_wait(2, 2_400, 0, 4_000, NOBODY);
    let later = lock_wait(1, 2_500, 0, 5_100, NOBODY);
    let truth = truth::join(&[stalled, now, later], &clock(), &trace());
    assert_eq!(truth.lock_stalls.next_waiter_running, 1);
    // Came at that very cycle: it waits already.
    let came = lock_wait(1, 4_000, 0, 5_100, NOBODY);
    let truth = truth::join(&[stalled, came], &clock(), &trace());
    assert_eq!(truth.lock_stalls.next_waiter_off_cpu, 1);
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
    let truth = truth::join(&[lock_wait(0, 2_900, 4_000, 5_500, 1)], &clock(), &trace);
    assert_eq!(truth.lock_stalls.unobserved, 1);
    assert_eq!(truth.holder_flag, Default::default());
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
    let truth = truth::join(&[all, others, answered], &clock(), &trace());
    assert_eq!(truth.shootdown_stalls_receiver_off_cpu, 1);
    assert_eq!(truth.shootdown_stalls_receivers_running, 2);
    assert_eq!(truth.lock_stalls.total(), 0);
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

// ---- against the oracle

/// A schedule of 4 vCPUs as the kernel would write it: times go up, states alternate.
fn schedules() -> impl Strategy<Value = Vec<Event>> {
    let steps = prop::collection::vec((1u64..400, 0u8..2), 0..12);
    prop::array::uniform4(steps).prop_map(|vcpus| {
        let mut events = Vec::new();
        for (vcpu, steps) in (0u16..).zip(vcpus) {
            let (mut time_ns, mut asleep, mut running) = (5_000, false, true);
            for (step, choice) in steps {
                time_ns += step;
                let what = match (running, asleep) {
                    (true, _) => {
                        running = false;
                        asleep = choice == 1;
                        switch_out(!asleep)
                    }
                    (false, true) => {
                        asleep = false;
                        What::SchedWakeup { waker_thread: 1 }
                    }
                    (false, false) => {
                        running = true;
                        switch_in()
                    }
                };
                events.push(event(vcpu, time_ns, what));
            }
        }
        events
    })
}

/// Any records of 4 vCPUs and 2 locks, most of them believable; what is not is refused before the join.
fn waits() -> impl Strategy<Value = Vec<GuestWait>> {
    let record = (
        0u16..5,
        1_000u64..9_000,
        0u64..3_000,
        0u64..3_000,
        0u16..2,
        0u8..6,
        1u8..4,
        any::<u64>(),
        0u64..32,
    );
    prop::collection::vec(record, 0..40).prop_map(|records| {
        records
            .into_iter()
            .filter_map(
                |(vcpu, begin, to_stall, to_end, lock, holder, kind, preempted, targets)| {
                    let stall = if to_stall % 3 == 0 {
                        0
                    } else {
                        begin + to_stall
                    };
                    let holder = if holder == 5 { NOBODY } else { holder };
                    let mut raw = raw_wait(begin, stall, begin + to_end, lock, holder);
                    raw.kind = kind;
                    raw.preempted_at_stall = preempted;
                    raw.targets = targets;
                    raw.waiting_at_stall = preempted >> 40 & 0xf;
                    GuestWait::from_abi(vcpu, 4, &raw).ok()
                },
            )
            .collect()
    })
}

/// Off its pCPU: the last event at or before that time says so; before the first, what that one ended.
fn oracle_off(events: &[Event], vcpu: u16, time_ns: u64) -> bool {
    let mine: Vec<&Event> = events
        .iter()
        .filter(|event| event.vcpu == Some(vcpu))
        .collect();
    let last = mine.iter().rev().find(|event| event.time_ns <= time_ns);
    match last {
        Some(event) => !matches!(event.what, What::SwitchIn { .. }),
        None => false, // these schedules begin with every vCPU on a pCPU
    }
}

fn oracle(waits: &[GuestWait], events: &[Event]) -> Truth {
    let mut truth = Truth {
        waits: waits.len() as u64,
        ..Truth::default()
    };
    for wait in waits {
        let Some(stall) = wait.stall else { continue };
        let time_ns = 5_000 + (stall.tsc - 1_000) / 2;
        let off = |vcpu| oracle_off(events, vcpu, time_ns);
        if wait.kind == WaitKind::Shootdown {
            if (0..4).any(|vcpu| wait.targets & stall.waiting & (1 << vcpu) != 0 && off(vcpu)) {
                truth.shootdown_stalls_receiver_off_cpu += 1;
            } else {
                truth.shootdown_stalls_receivers_running += 1;
            }
            continue;
        }
        let next = waits
            .iter()
            .filter(|other| {
                other.kind == WaitKind::Lock
                    && other.lock == wait.lock
                    && other.end_tsc >= stall.tsc
            })
            .min_by_key(|other| (other.end_tsc, other.vcpu, other.begin_tsc));
        let causes = &mut truth.lock_stalls;
        if let Some(holder) = stall.holder {
            let flag = stall.preempted & (1 << holder) != 0;
            match (flag, off(holder)) {
                (true, true) => truth.holder_flag.set_and_off_cpu += 1,
                (true, false) => truth.holder_flag.set_but_running += 1,
                (false, true) => truth.holder_flag.clear_but_off_cpu += 1,
                (false, false) => truth.holder_flag.clear_and_running += 1,
            }
            if off(holder) {
                causes.holder_off_cpu += 1
            } else {
                causes.holder_running += 1
            }
        } else {
            match next {
                None => causes.next_unknown += 1,
                Some(next) if next.begin_tsc > stall.tsc => causes.next_came_later += 1,
                Some(next) if off(next.vcpu) => causes.next_waiter_off_cpu += 1,
                Some(_) => causes.next_waiter_running += 1,
            }
        }
        let mut deeper = 0;
        for vcpu in 0..4 {
            let waiting = stall.waiting & (1 << vcpu) != 0;
            if waiting
                && vcpu != wait.vcpu
                && next.is_none_or(|next| next.vcpu != vcpu)
                && off(vcpu)
            {
                deeper += 1;
            }
        }
        truth.deeper_waiters_off_cpu += deeper;
        truth.stalls_with_deeper_waiter_off_cpu += u64::from(deeper > 0);
    }
    truth
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_join_agrees_with_the_oracle(events in schedules(), waits in waits()) {
        let trace = SwitchTrace::new(3, 0..4, &events);
        prop_assert_eq!(truth::join(&waits, &clock(), &trace), oracle(&waits, &events));
    }

    #[test]
    fn every_stall_has_one_cause(events in schedules(), waits in waits(), observed in 0u16..5) {
        let trace = SwitchTrace::new(3, 0..observed, events.iter().filter(|event| event.vcpu < Some(observed)));
        let truth = truth::join(&waits, &clock(), &trace);
        let stalls = |kind| waits.iter().filter(|wait| wait.kind == kind && wait.stall.is_some()).count() as u64;
        prop_assert_eq!(truth.lock_stalls.total(), stalls(WaitKind::Lock));
        prop_assert_eq!(
            truth.shootdown_stalls_receiver_off_cpu + truth.shootdown_stalls_receivers_running,
            stalls(WaitKind::Shootdown)
        );
    }

    #[test]
    fn no_record_makes_the_join_panic(
        records in prop::collection::vec(prop::array::uniform32(any::<u8>()), 0..20),
        times in prop::collection::vec(prop::array::uniform5(any::<u64>()), 20), vcpu in any::<u16>(), vcpus in any::<u16>(),
    ) {
        let waits: Vec<GuestWait> = records.iter().zip(times).filter_map(|(bytes, times)| {
            let raw = abi::unspin_guest_wait {
                begin_tsc: times[0], end_tsc: times[1], released_tsc: times[2], stall_tsc: times[3], targets: times[4],
                turns: u32::from(bytes[0]), lock: u16::from(bytes[1]), kind: bytes[2] % 4, holder_at_stall: bytes[3],
                preempted_at_stall: times[0], waiting_at_stall: times[1],
            };
            GuestWait::from_abi(vcpu, vcpus, &raw).ok()
        }).collect();
        let truth = truth::join(&waits, &clock(), &trace());
        prop_assert_eq!(truth.waits, waits.len() as u64);
    }
}
