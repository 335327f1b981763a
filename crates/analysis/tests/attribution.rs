// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams made by hand, one for each cause, and what must be said of them.

mod stream;

use stream::{CALL, ELSEWHERE, LOCK, Stream};
use unspin_analysis::{
    explain::{
        attribution::{EVENTS_MAX, Explainer, Explanation, Options},
        cause::Cause,
    },
    waits::{presence::Occupant, spin_locations::Naming},
};
use unspin_events::{Event, GuestMode, What};

const KERNEL: Result<Option<GuestMode>, ()> = Ok(Some(GuestMode::Kernel));
const USER: Result<Option<GuestMode>, ()> = Ok(Some(GuestMode::User));

fn options() -> Options {
    Options {
        naming: Naming::default(),
        ipis_seen: true,
        minimum_wait_ns: 0,
        waits_max: 100,
        events_max: EVENTS_MAX,
        keep_slices: true,
    }
}

fn explain(events: &[Event]) -> Explanation {
    explain_with(events, options())
}

fn explain_with(events: &[Event], options: Options) -> Explanation {
    let mut events = events.to_vec();
    events.sort_by_key(|event| event.time_ns);
    let mut explainer = Explainer::new(options);
    events.into_iter().for_each(|event| explainer.push(event));
    explainer.finish()
}

/// SpinTime for that cause by that vCPU, microseconds.
#[track_caller]
fn spin_ns(explanation: &Explanation, vcpu: u16, cause: Cause) -> u64 {
    let slices = explanation.vms[&0].slices.iter();
    let own = slices.filter(|slice| slice.vcpu == vcpu && slice.cause == cause);
    own.map(|slice| slice.end_ns - slice.begin_ns).sum::<u64>() / 1_000
}

/// vCPU 0 spins on CPU 0 from 100 to 160 and is in user mode at 190; vCPU 1 is off its CPU from 50 to 150.
fn absence(mode: Result<Option<GuestMode>, ()>) -> Stream {
    let mut stream = Stream::default();
    stream.comes(10, 0, 0);
    stream.comes(10, 1, 1);
    stream.leaves(50, 1, 1, mode, ELSEWHERE);
    stream.spins(100, 0, 0, LOCK, 5);
    stream.comes(150, 1, 1);
    stream.leaves(190, 0, 0, USER, 0x40_0000);
    stream.leaves(191, 1, 1, USER, 0x40_0000);
    stream
}

#[test]
fn spin_time_begins_a_window_before_and_ends_half_a_window_after() {
    let explanation = explain(&absence(USER).events);
    let slices = &explanation.vms[&0].slices;
    assert_eq!(slices.first().map(|slice| slice.begin_ns), Some(100_000));
    // Entered at 160, and half of 10 more.
    assert_eq!(slices.last().map(|slice| slice.end_ns), Some(165_000));
    assert_eq!(explanation.vms[&0].spin_time.total(), 65_000);
    // vCPU 0 ran from 10 to 190, vCPU 1 from 10 to 50 and from 150 to 191.
    assert_eq!(explanation.vms[&0].cpu_ns, 180_000 + 40_000 + 41_000);
}

#[test]
fn a_vcpu_off_its_cpu_in_the_kernel_holds_the_lock() {
    let explanation = explain(&absence(KERNEL).events);
    assert_eq!(spin_ns(&explanation, 0, Cause::HolderPreempted), 50);
    assert_eq!(spin_ns(&explanation, 0, Cause::Contention), 15);
    let wait = &explanation.vms[&0].longest[0];
    assert_eq!(wait.cause, Cause::HolderPreempted);
    let (vcpu, absence) = wait.blamed.expect("somebody is to blame");
    let absence = absence.expect("it was away");
    assert_eq!(
        (vcpu, absence.since_ns, absence.until_ns),
        (1, 50_000, Some(150_000))
    );
    assert_eq!(wait.instead, Some(Occupant::Task(7)));
}

#[test]
fn one_in_user_mode_or_asleep_holds_nothing() {
    for mode in [USER, Err(())] {
        let explanation = explain(&absence(mode).events);
        assert_eq!(spin_ns(&explanation, 0, Cause::Contention), 65, "{mode:?}");
    }
}

#[test]
fn where_the_mode_is_hidden_nothing_is_said() {
    let explanation = explain(&absence(Ok(None)).events);
    assert_eq!(spin_ns(&explanation, 0, Cause::Unknown), 50);
    assert_eq!(explanation.vms[&0].longest[0].cause, Cause::Unknown);
}

#[test]
fn who_is_away_while_another_is_served_holds_nothing() {
    let mut stream = absence(KERNEL);
    // vCPU 2 waits at the same lock, has it at 110 and is seen in user mode at 130: while vCPU 1 is away.
    stream.comes(10, 2, 2);
    let entered = stream.spins(86, 2, 2, LOCK, 2);
    assert_eq!(entered, 110);
    stream.leaves(130, 2, 2, USER, 0x40_0000);
    let explanation = explain(&stream.events);
    assert_eq!(spin_ns(&explanation, 0, Cause::HolderPreempted), 0);
    assert_eq!(spin_ns(&explanation, 0, Cause::Contention), 65);
}

/// vCPUs 0 and 1 take turns on CPU 0 and at a lock that serves in order: 1 comes while 0 is off its CPU, and spins until 0
/// is back and served.
fn convoy(cycles: u64) -> Stream {
    let mut stream = Stream::default();
    for cycle in 0..cycles {
        let t = 1_000 + cycle * 200;
        stream.comes(t - 20, 0, 0);
        stream.pauses(t + 10, 0, 0, LOCK, 10);
        stream.leaves(t + 12, 0, 0, KERNEL, LOCK);
        stream.comes(t + 12, 1, 0);
        stream.pauses(t + 24, 1, 0, LOCK, 10);
        stream.enters(t + 26, 1, 0);
        stream.pauses(t + 36, 1, 0, LOCK, 10);
        stream.leaves(t + 38, 1, 0, KERNEL, LOCK);
        stream.comes(t + 38, 0, 0);
        stream.enters(t + 40, 0, 0);
        stream.leaves(t + 90, 0, 0, USER, 0x40_0000);
        stream.comes(t + 90, 1, 0);
        stream.enters(t + 92, 1, 0);
        stream.leaves(t + 150, 1, 0, USER, 0x40_0000);
    }
    stream
}

#[test]
fn in_order_the_next_waiter_is_waited_for() {
    let explanation = explain(&convoy(30).events);
    let of = &explanation.vms[&0];
    let (_, lock) = of.loops.first_key_value().expect("a loop");
    assert_eq!(lock.spin_loop.in_order, Some(true));
    // Each time from 14 to 38 after the cycle's begin.
    assert_eq!(
        spin_ns(&explanation, 1, Cause::NextWaiterPreempted),
        30 * 24
    );
    let blamed = of
        .blame
        .iter()
        .filter(|(blame, _)| blame.cause == Cause::NextWaiterPreempted);
    for (blame, _) in blamed {
        assert_eq!(blame.vcpu, Some(0));
        assert_eq!(blame.instead, Some(Occupant::Vcpu { vm: 0, vcpu: 1 }));
    }
}

#[test]
fn of_an_order_hardly_seen_nothing_is_said() {
    let explanation = explain(&convoy(3).events);
    assert_eq!(spin_ns(&explanation, 1, Cause::NextWaiterPreempted), 0);
    assert!(spin_ns(&explanation, 1, Cause::Unknown) > 0);
}

/// vCPU 0 asks 1 and 2, who are off their CPUs since 50, at 100; 1 is back at 140 and 2 at `back_us`.
fn call(
    first: Result<Option<GuestMode>, ()>,
    second: Result<Option<GuestMode>, ()>,
    back_us: u64,
) -> Stream {
    let mut stream = Stream::default();
    for vcpu in 0..3 {
        stream.comes(10, vcpu, vcpu);
    }
    stream.leaves(50, 1, 1, first, ELSEWHERE);
    stream.leaves(50, 2, 2, second, ELSEWHERE);
    stream.sends(100, 0, 0, 1);
    stream.sends(101, 0, 0, 2);
    let entered = stream.spins(102, 0, 0, CALL, 8);
    assert_eq!(entered, 198);
    stream.comes(140, 1, 1);
    stream.comes(back_us, 2, 2);
    stream.leaves(230, 0, 0, USER, 0x40_0000);
    stream
}

#[test]
fn a_call_waits_for_the_receiver_that_is_back_last() {
    let causes = [
        (USER, Cause::CallUser),
        (KERNEL, Cause::CallKernel),
        (Err(()), Cause::CallHalted),
    ];
    for (mode, cause) in causes {
        let explanation = explain(&call(USER, mode, 190).events);
        // From half of the handling (1) before the first IPI until vCPU 2 is back.
        assert_eq!(spin_ns(&explanation, 0, cause), 190 - 99, "{cause:?}");
        let wait = &explanation.vms[&0].longest[0];
        assert_eq!(wait.blamed.map(|(vcpu, _)| vcpu), Some(2));
    }
}

#[test]
fn a_call_to_vcpus_that_run_is_contention() {
    let mut stream = Stream::default();
    stream.comes(10, 0, 0);
    stream.comes(10, 1, 1);
    stream.sends(100, 0, 0, 1);
    stream.spins(102, 0, 0, CALL, 3);
    stream.leaves(160, 0, 0, USER, 0x40_0000);
    let explanation = explain(&stream.events);
    let of = &explanation.vms[&0];
    assert_eq!(of.spin_time.of(Cause::Contention), of.spin_time.total());
    assert!(of.spin_time.total() >= 30_000);
}

#[test]
fn without_sight_of_ipis_lock_and_call_are_not_told_apart() {
    let blind = Options {
        ipis_seen: false,
        ..options()
    };
    let explanation = explain_with(&absence(KERNEL).events, blind);
    assert_eq!(spin_ns(&explanation, 0, Cause::Unknown), 65);
}

#[test]
fn spin_time_before_a_loss_is_unknown() {
    let mut events = absence(KERNEL).events;
    let lost = |lost_kind| Event::lost(195_000, 3, lost_kind);
    // Directed yields are not needed, switches are.
    events.push(lost(6));
    assert_eq!(spin_ns(&explain(&events), 0, Cause::HolderPreempted), 50);
    events.push(lost(1));
    let explanation = explain(&events);
    assert_eq!(explanation.losses, 1);
    assert_eq!(spin_ns(&explanation, 0, Cause::Unknown), 65);
}

#[test]
fn a_pv_page_says_who_holds_nothing() {
    let mut stream = absence(KERNEL);
    let pv_page = |flags| What::PvPage {
        arguments: [flags, 0, 5],
    };
    stream.push(50, 1, 1, pv_page(0));
    assert_eq!(spin_ns(&explain(&stream.events), 0, Cause::Contention), 65);
    stream.events.pop();
    // critical and holding
    stream.push(50, 1, 1, pv_page(1 | 1 << 8));
    assert_eq!(
        spin_ns(&explain(&stream.events), 0, Cause::HolderPreempted),
        50
    );
}

#[test]
fn a_long_stream_is_judged_in_parts() {
    // Wake-ups fill the buffer and say nothing.
    let mut events = absence(KERNEL).events;
    for at in 0..1_000 {
        events.push(Event {
            time_ns: 300_000 + at,
            vm: Some(0),
            vcpu: Some(0),
            thread: 100,
            cpu: 0,
            what: What::SchedWakeup { waker_thread: 1 },
        });
    }
    let parts = Options {
        events_max: 100,
        ..options()
    };
    let explanation = explain_with(&events, parts);
    assert_eq!(spin_ns(&explanation, 0, Cause::HolderPreempted), 50);
    assert_eq!(explanation.vms[&0].waits, 1);
    // Both vCPUs were off their CPUs all the while.
    assert_eq!(explanation.vms[&0].cpu_ns, 261_000);
}

#[test]
fn pauses_of_many_short_waits_are_no_window() {
    // Exits after 100 us, 300 us, ... in the guest: nobody spins for as long as that.
    let mut stream = Stream::default();
    stream.comes(10, 0, 0);
    let mut now_us = 10;
    for times in [1u32, 3, 9, 27, 81, 2, 50, 14, 7, 33] {
        now_us += u64::from(times) * 100;
        stream.pauses(now_us, 0, 0, LOCK, times * 100);
        stream.enters(now_us + 2, 0, 0);
        now_us += 2;
    }
    stream.leaves(now_us + 500, 0, 0, USER, 0x40_0000);
    let explanation = explain(&stream.events);
    let of = &explanation.vms[&0];
    assert!(
        of.spin_time.total() * 100 < of.cpu_ns,
        "{} ns",
        of.spin_time.total()
    );
    assert_eq!(of.loops[&Some(LOCK)].spin_loop.window_ns, 0);
}
