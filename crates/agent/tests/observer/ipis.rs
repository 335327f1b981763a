// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of inter-processor interrupts against what the guests say that they sent.

use std::collections::BTreeMap;
use unspin_testbed::check;

use unspin_agent::{
    EventMask, IpiVisibility, ObserveOptions, Observer, ipi_visibility,
    synthetic::{Ipi, Synthetic, Vcpu},
};
use unspin_events::{Event, GuestMode, IpiForm, What};
use unspin_scenario::Vm;

use crate::{
    checks::record,
    vms::{loops, run_for, vcpus, vm},
};

/// guest/machine/layout.h
const VECTOR_SHOOTDOWN: u8 = 33;
const VECTOR_WAKE: u8 = 34;
const VCPUS: u16 = 4;

/// Sends often, and has a tick of its own, which must not be taken for an IPI.
fn sender() -> Vm {
    Vm {
        shootdown_every_iterations: 5,
        wakeup_every_iterations: 7,
        load_changes_every_ms: 0,
        user_work: loops(1_000),
        tick_hz: 500,
        ..vm(u32::from(VCPUS))
    }
}

/// How often each (form, vector, receiver, destination) was recorded of that thread.
fn sent(events: &[Event], thread: u32) -> BTreeMap<(IpiForm, u8, u16, Option<u64>), u64> {
    let mut sent = BTreeMap::new();
    for event in events.iter().filter(|event| event.thread == thread) {
        if let What::Ipi {
            receiver_vcpu,
            vector,
            delivery_mode,
            form,
            destination,
        } = event.what
        {
            assert_eq!(
                delivery_mode, 0,
                "{event:?}: the guest sends fixed ones only"
            );
            *sent
                .entry((form, vector, receiver_vcpu, destination))
                .or_default() += 1;
        }
    }
    sent
}

check!(INTERRUPTED: ipis_equal_what_the_guests_sent);
/// Every receiver of every IPI is recorded once, with its form, and nothing else is.
pub fn ipis_equal_what_the_guests_sent() {
    let events = EventMask::IPIS.and(EventMask::SWITCHES);
    let options = ObserveOptions {
        events,
        ..ObserveOptions::default()
    };
    assert_eq!(ipi_visibility(&options), IpiVisibility::Visible);
    let (report, recorded) = record(7, 100, sender(), events);
    let health = recorded.observer.health().expect("the kernel tells");
    assert_eq!(health.lost_events, 0, "{health:?}");
    // A program that another vCPU's thread preempted half way misses its runs on that CPU meanwhile, and the kernel counts
    // them. Each may have cost an IPI all its receivers; without any the counts must be equal.
    let mut may_miss = health.recursion_misses() * u64::from(VCPUS - 1);
    let mut check = |seen: u64, sent: u64, what: &str| {
        assert!(
            seen <= sent && sent - seen <= may_miss,
            "{what}: {seen} of {sent}, {health:?}"
        );
        may_miss -= sent - seen;
    };
    let events = recorded.events;
    let (mut shootdowns, mut wakeups, mut ticks) = (0, 0, 0);
    for (_, vcpu) in vcpus(&report) {
        let own = vcpu.number as u16;
        let next = (own + 1) % VCPUS;
        let mut sent = sent(&events, vcpu.thread_id);
        let mut take = |form, vector, receiver, destination| {
            sent.remove(&(form, vector, receiver, destination))
                .unwrap_or(0)
        };
        let others: Vec<u16> = (0..VCPUS).filter(|number| *number != own).collect();
        for other in &others {
            // The shorthand's destination field is not used; the guest leaves it zero.
            let seen = take(IpiForm::AllButSelf, VECTOR_SHOOTDOWN, *other, Some(0));
            let what = format!("shootdowns by {own} to {other}");
            check(seen, vcpu.statistics.shootdowns, &what);
        }
        let woken = take(IpiForm::Physical, VECTOR_WAKE, next, Some(next.into()));
        check(
            woken,
            vcpu.statistics.wakeups,
            &format!("wake-ups by {own}"),
        );
        // The barriers and the end wake everybody: at most once each.
        let everybody: Vec<u64> = others
            .iter()
            .map(|other| take(IpiForm::AllButSelf, VECTOR_WAKE, *other, Some(0)))
            .collect();
        assert!(everybody.iter().all(|count| *count <= 3), "{everybody:?}");
        assert_eq!(sent, BTreeMap::new(), "vCPU {own} sent nothing else");
        shootdowns += vcpu.statistics.shootdowns;
        wakeups += vcpu.statistics.wakeups;
        ticks += vcpu.statistics.ticks;
    }
    assert!(
        shootdowns > 40 && wakeups > 40 && ticks > 40,
        "{shootdowns} shootdowns, {wakeups} wake-ups and {ticks} ticks prove little"
    );
}

check!(INTERRUPTED: without_their_programs_ipis_are_blind);
/// Left out, the programs are not loaded, nothing is recorded, and the record says that it is blind. All others work, here
/// with the reads that kernels before 6.17 have.
pub fn without_their_programs_ipis_are_blind() {
    let options = ObserveOptions {
        events: EventMask::SWITCHES.and(EventMask::PAUSE_LOOPS),
        direct_reads: false,
        ..ObserveOptions::default()
    };
    assert!(matches!(
        ipi_visibility(&options),
        IpiVisibility::Blind(reason) if reason.contains("left out")
    ));
    let mut observer = Observer::attach(&options).expect("the testbed's kernel has all it takes");
    let report = run_for(20, vec![sender()]);
    let sent: u64 = vcpus(&report)
        .map(|(_, vcpu)| vcpu.statistics.shootdowns)
        .sum();
    assert!(sent > 0);
    let mut pauses = 0;
    observer
        .drain(&mut |event| match event.what {
            What::Ipi { .. } => panic!("{event:?}"),
            What::PauseExit {
                guest_rip,
                mode,
                window,
                ..
            } => {
                pauses += 1;
                let known = (guest_rip.is_some(), mode, window);
                assert_eq!(
                    known,
                    (true, Some(GuestMode::Kernel), Some(64)),
                    "{event:?}"
                );
            }
            _ => {}
        })
        .expect("the ring");
    assert!(pauses > 20, "{pauses} pause-loop exits prove little");
    let health = observer.health().expect("the kernel tells");
    let apic = |name: &str| name.contains("apic") || name.contains("hypercall");
    assert!(
        !health.programs.iter().any(|program| apic(&program.name)),
        "{health:?}"
    );
}

check!(INTERRUPTED: ipis_are_whole_on_both_paths_of_kvm);
/// KVM's fast path names the receivers before it says that it was an IPI. The testbed's processor has no next_rip, so its KVM
/// never takes that path: both orders are played through the same code.
pub fn ipis_are_whole_on_both_paths_of_kvm() {
    let options = ObserveOptions {
        events: EventMask::IPIS,
        ..ObserveOptions::default()
    };
    let (mut observer, synthetic) = Synthetic::attach(&options).expect("no KVM is needed");
    let vcpu = Vcpu {
        vm: 0x1000,
        number: 20,
    };
    assert!(synthetic.adopt(vcpu, 0).expect("the program runs"));
    let mut sent = |ipi: Ipi| {
        assert!(synthetic.send(ipi).expect("the program runs"));
        let mut seen = Vec::new();
        let undecodable = observer.drain(&mut |event| match event.what {
            What::Ipi {
                receiver_vcpu,
                vector,
                delivery_mode,
                form,
                destination,
            } => seen.push((receiver_vcpu, vector, delivery_mode, form, destination)),
            _ => panic!("{event:?}"),
        });
        assert_eq!(undecodable.expect("the ring"), 0);
        seen
    };
    let (logical, all_but_self, nmi) = (0x800, 0xc_0000, 0x400);
    for (fast, icr_low, receivers, form) in [
        (true, 33, 1, IpiForm::Physical),
        (false, 33, 1, IpiForm::Physical),
        (true, logical | 34, 16, IpiForm::Logical),
        (false, logical | nmi | 2, 16, IpiForm::Logical),
        (false, all_but_self | 35, 20, IpiForm::AllButSelf),
    ] {
        // The sender's timer has the same vector at worst; what comes of it after a fast one is not that IPI's.
        for own_vector in [0, 236] {
            let seen = sent(Ipi {
                icr_low,
                destination: 7,
                receivers,
                fast,
                own_vector,
            });
            let mode = (icr_low >> 8 & 7) as u8;
            let wanted: Vec<_> = (0..receivers as u16)
                .map(|receiver| (receiver, icr_low as u8, mode, form, Some(7)))
                .collect();
            assert_eq!(seen, wanted, "fast {fast}, own vector {own_vector}");
        }
    }
    let same = Ipi {
        icr_low: 33,
        destination: 7,
        receivers: 1,
        fast: true,
        own_vector: 33,
    };
    assert_eq!(sent(same).len(), 1, "a fast IPI is whole when it is said");
    let shorthand = Ipi {
        icr_low: all_but_self | 33,
        receivers: 2,
        fast: false,
        ..same
    };
    assert_eq!(
        sent(shorthand).len(),
        2,
        "\"all but self\" has no sender among its receivers"
    );
}
