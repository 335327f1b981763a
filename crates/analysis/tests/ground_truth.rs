// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ground truth about hand-made logs, and how explanations are judged by it.

mod stream;

use std::collections::BTreeMap;

use stream::{ELSEWHERE, Stream};
use unspin_analysis::{
    explain::{
        cause::Cause,
        evaluation::Evaluation,
        ground_truth::{Order, Slice, TrueWait, ground_truth},
    },
    waits::presence::{self, Presence},
};
use unspin_events::{ClockSample, GuestMode, GuestWait, TscClock, WaitKind};

const KERNEL: Result<Option<GuestMode>, ()> = Ok(Some(GuestMode::Kernel));
const USER: Result<Option<GuestMode>, ()> = Ok(Some(GuestMode::User));

/// One cycle is one nanosecond; times of waits are microseconds.
fn clock() -> TscClock {
    let at = |tsc| ClockSample { tsc, ns: tsc };
    TscClock::new(at(1), at(1_000_000_000)).expect("a clock")
}

fn wait(kind: WaitKind, vcpu: u16, begin_us: u64, end_us: u64, released_us: u64) -> GuestWait {
    GuestWait {
        vcpu,
        kind,
        lock: 0,
        begin_tsc: begin_us * 1_000,
        end_tsc: end_us * 1_000,
        released_tsc: (kind == WaitKind::Lock).then_some(released_us * 1_000),
        targets: 0,
        spins: 1,
        stall: None,
    }
}

fn lock(vcpu: u16, begin_us: u64, end_us: u64, released_us: u64) -> GuestWait {
    wait(WaitKind::Lock, vcpu, begin_us, end_us, released_us)
}

fn presence(stream: &Stream) -> BTreeMap<u16, Presence> {
    let mut events = stream.events.clone();
    events.sort_by_key(|event| event.time_ns);
    presence::of_vm(0, &events)
}

/// vCPU 0 runs all the time; vCPU 1 is off its CPU from 50 to 150.
fn away(mode: Result<Option<GuestMode>, ()>) -> Stream {
    let mut stream = Stream::default();
    stream.comes(1, 0, 0);
    stream.comes(1, 1, 1);
    stream.leaves(50, 1, 1, mode, ELSEWHERE);
    stream.comes(150, 1, 1);
    stream
}

fn of(waits: &[GuestWait], order: Order, stream: &Stream, vcpu: u16) -> TrueWait {
    let all = ground_truth(waits, &clock(), order, &presence(stream));
    let mut own = all.into_iter().filter(|wait| wait.vcpu == vcpu);
    own.next().expect("a wait of that vCPU")
}

#[test]
fn a_holder_off_its_cpu_is_told_from_one_that_runs() {
    // 1 has it from 20 to 180, 0 waits from 30 to 181.
    let waits = [lock(1, 20, 20, 180), lock(0, 30, 181, 190)];
    let ground_truth = of(&waits, Order::Fifo, &away(KERNEL), 0);
    assert_eq!(ground_truth.spin_time.of(Cause::HolderPreempted), 100_000);
    assert_eq!(ground_truth.spin_time.of(Cause::Contention), 51_000);
    assert_eq!(ground_truth.cause(), Some(Cause::HolderPreempted));
}

#[test]
fn a_free_lock_waits_for_the_next_in_order() {
    // 2 has it until 60 and runs; 1, who asked at 40, is next, and away until 150.
    let mut stream = away(KERNEL);
    stream.comes(1, 2, 2);
    let waits = [
        lock(2, 10, 10, 60),
        lock(1, 40, 152, 160),
        lock(0, 55, 160, 170),
    ];
    let ground_truth = of(&waits, Order::Fifo, &stream, 0);
    assert_eq!(
        ground_truth.spin_time.of(Cause::NextWaiterPreempted),
        90_000
    );
    assert_eq!(ground_truth.slices[1].blamed, Some(1));
    // Without an order whoever runs would have taken it: then it had been taken already.
    let ground_truth = of(&waits, Order::None, &stream, 0);
    assert_eq!(ground_truth.spin_time.of(Cause::NextWaiterPreempted), 0);
    assert_eq!(ground_truth.spin_time.of(Cause::HolderPreempted), 90_000);
}

#[test]
fn a_release_written_down_late_does_not_make_a_holder() {
    // 1 lets go at 45 or so, is preempted, and writes 155; 2 has it from 46 to 100.
    let mut stream = away(KERNEL);
    stream.comes(1, 2, 2);
    let waits = [
        lock(1, 20, 20, 155),
        lock(2, 30, 46, 100),
        lock(0, 40, 101, 110),
    ];
    let ground_truth = of(&waits, Order::Fifo, &stream, 0);
    assert_eq!(ground_truth.spin_time.of(Cause::HolderPreempted), 0);
    assert_eq!(ground_truth.spin_time.of(Cause::Contention), 61_000);
}

#[test]
fn only_time_on_a_cpu_is_spin_time() {
    let waits = [lock(0, 10, 10, 200), lock(1, 30, 201, 210)];
    let ground_truth = of(&waits, Order::Fifo, &away(KERNEL), 1);
    assert_eq!(ground_truth.spin_time.total(), 20_000 + 51_000);
}

#[test]
fn a_call_waits_for_the_last_to_answer() {
    for (mode, cause) in [
        (USER, Cause::CallUser),
        (KERNEL, Cause::CallKernel),
        (Err(()), Cause::CallHalted),
    ] {
        let mut sent = wait(WaitKind::Shootdown, 0, 60, 160, 0);
        sent.targets = 0b10;
        let mut answer = wait(WaitKind::Answer, 1, 155, 155, 0);
        answer.targets = 0b01;
        let ground_truth = of(&[sent, answer], Order::Fifo, &away(mode), 0);
        assert_eq!(ground_truth.spin_time.of(cause), 90_000);
        assert_eq!(ground_truth.spin_time.of(Cause::Contention), 10_000);
    }
}

#[test]
fn an_explanation_is_judged_wait_by_wait() {
    let waits = [lock(1, 20, 20, 180), lock(0, 30, 181, 190)];
    let ground_truth = [of(&waits, Order::Fifo, &away(KERNEL), 0)];
    let said = |cause, begin_us: u64, end_us: u64| Slice {
        vcpu: 0,
        begin_ns: begin_us * 1_000,
        end_ns: end_us * 1_000,
        cause,
        blamed: None,
    };
    let judged =
        |slices: &[Slice], minimum_ns| Evaluation::new(&ground_truth, slices, minimum_ns, 5_000);
    let right = judged(&[said(Cause::HolderPreempted, 40, 140)], 0);
    assert_eq!(
        (right.waits(), right.attributed(), right.right()),
        (1, 1, 1)
    );
    assert_eq!(
        (right.true_spin_ns, right.explained_spin_ns),
        (151_000, 100_000)
    );
    let wrong = judged(&[said(Cause::Contention, 40, 140)], 0);
    assert_eq!((wrong.attributed(), wrong.right()), (1, 0));
    // Another vCPU's, nothing, or a lead of less than the margin: not attributed.
    let close = [
        said(Cause::HolderPreempted, 40, 92),
        said(Cause::Contention, 92, 140),
    ];
    for slices in [&[][..], &close] {
        let silent = judged(slices, 0);
        assert_eq!((silent.waits(), silent.attributed()), (1, 0));
    }
    // Too short to matter, but spin time.
    let short = judged(&[], 1_000_000);
    assert_eq!((short.waits(), short.true_spin_ns), (0, 151_000));
    assert_eq!(wrong.always_majority(), 1);
}
