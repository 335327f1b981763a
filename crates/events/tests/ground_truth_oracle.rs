// SPDX-License-Identifier: MIT OR Apache-2.0
//! The join of ground truth and switch trace, against an oracle that looks at everything for every stall.

mod waits;

use proptest::prelude::*;
use unspin_abi as abi;
use unspin_events::{
    Event, GuestWait, SwitchTrace, WaitKind, What,
    ground_truth::{self, GroundTruth},
};
use waits::{NOBODY, clock, event, raw_wait, switch_in, switch_out};

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
fn any_waits() -> impl Strategy<Value = Vec<GuestWait>> {
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

fn oracle(waits: &[GuestWait], events: &[Event]) -> GroundTruth {
    // An answer is no wait.
    let waits: Vec<GuestWait> = waits
        .iter()
        .filter(|wait| wait.kind != WaitKind::Answer)
        .copied()
        .collect();
    let waits = &waits;
    let mut ground_truth = GroundTruth {
        waits: waits.len() as u64,
        ..GroundTruth::default()
    };
    for wait in waits {
        let Some(stall) = wait.stall else { continue };
        let time_ns = 5_000 + (stall.tsc - 1_000) / 2;
        let off = |vcpu| oracle_off(events, vcpu, time_ns);
        if wait.kind == WaitKind::Shootdown {
            if (0..4).any(|vcpu| wait.targets & stall.waiting & (1 << vcpu) != 0 && off(vcpu)) {
                ground_truth.shootdown_stalls_receiver_off_cpu += 1;
            } else {
                ground_truth.shootdown_stalls_receivers_running += 1;
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
        let causes = &mut ground_truth.lock_stalls;
        if let Some(holder) = stall.holder {
            let flag = stall.preempted & (1 << holder) != 0;
            match (flag, off(holder)) {
                (true, true) => ground_truth.holder_flag.set_and_off_cpu += 1,
                (true, false) => ground_truth.holder_flag.set_but_running += 1,
                (false, true) => ground_truth.holder_flag.clear_but_off_cpu += 1,
                (false, false) => ground_truth.holder_flag.clear_and_running += 1,
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
        ground_truth.deeper_waiters_off_cpu += deeper;
        ground_truth.stalls_with_deeper_waiter_off_cpu += u64::from(deeper > 0);
    }
    ground_truth
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_join_agrees_with_the_oracle(events in schedules(), waits in any_waits()) {
        let trace = SwitchTrace::new(3, 0..4, &events);
        prop_assert_eq!(ground_truth::join(&waits, &clock(), &trace), oracle(&waits, &events));
    }

    #[test]
    fn every_stall_has_one_cause(events in schedules(), waits in any_waits(), observed in 0u16..5) {
        let trace = SwitchTrace::new(3, 0..observed, events.iter().filter(|event| event.vcpu < Some(observed)));
        let ground_truth = ground_truth::join(&waits, &clock(), &trace);
        let stalls = |kind| waits.iter().filter(|wait| wait.kind == kind && wait.stall.is_some()).count() as u64;
        prop_assert_eq!(ground_truth.lock_stalls.total(), stalls(WaitKind::Lock));
        prop_assert_eq!(
            ground_truth.shootdown_stalls_receiver_off_cpu + ground_truth.shootdown_stalls_receivers_running,
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
                spins: u32::from(bytes[0]), lock: u16::from(bytes[1]), kind: bytes[2] % 5, holder_at_stall: bytes[3],
                preempted_at_stall: times[0], waiting_at_stall: times[1],
            };
            GuestWait::from_abi(vcpu, vcpus, &raw).ok()
        }).collect();
        let ground_truth = ground_truth::join(&waits, &clock(), &SwitchTrace::default());
        let answers = waits.iter().filter(|wait| wait.kind == WaitKind::Answer).count();
        prop_assert_eq!(ground_truth.waits, (waits.len() - answers) as u64);
    }
}
