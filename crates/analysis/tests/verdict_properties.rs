// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever happens to vCPUs: times are neither lost nor counted twice, and something is said of each VM.

use proptest::{collection::vec, prelude::*};
use unspin_analysis::{
    verdict::{
        study::{HALTED, IO, RUNNING, STOPPED, WAITING, study_events},
        words::verdicts,
    },
    waits::spin_locations::Naming,
};
use unspin_events::{Event, GuestMode, What, facts::Facts};

fn what() -> impl Strategy<Value = What> {
    let code = prop::sample::select(vec![None, Some(0x60), Some(0x78), Some(0x400)]);
    prop_oneof![
        3 => (0u32..4).prop_map(|previous_thread| What::SwitchIn { previous_thread, previous_vm: None }),
        3 => (0u32..4, any::<bool>(), code).prop_map(|(next_thread, runnable, exit_code)| What::SwitchOut {
            next_thread,
            next_vm: None,
            runnable,
            preempt: runnable,
            mode: Some(GuestMode::Kernel),
            exit_code,
            guest_rip: Some(0x5_0000),
        }),
        2 => (0u32..4).prop_map(|waker_thread| What::SchedWakeup { waker_thread }),
        2 => Just(What::PauseExit {
            guest_rip: Some(0x2000),
            mode: Some(GuestMode::Kernel),
            window: Some(200),
            inside_ns: 10_000,
            other_exits: 0,
            interrupt_exits: 0,
        }),
        1 => Just(What::Lost { events: 3, lost_kind: 1 }),
    ]
}

/// Events of two VMs of two vCPUs, in order of time.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0u64..50_000_000, 0u32..2, 0u16..2, 0u16..2, what());
    vec(event, 0..300).prop_map(|steps| {
        let mut time_ns = 1_000;
        let event = |(step_ns, vm, vcpu, cpu, what)| {
            time_ns += step_ns;
            Event {
                time_ns,
                vm: Some(vm),
                vcpu: Some(vcpu),
                thread: 10 + 2 * vm + u32::from(vcpu),
                cpu,
                what,
            }
        };
        steps.into_iter().map(event).collect()
    })
}

proptest! {
    #[test]
    fn times_add_up(events in events()) {
        let facts = Facts::default();
        let study = study_events(&facts, Naming::default(), events.iter().copied());
        let span_ns = study.span_ns.1 - study.span_ns.0;
        for of in study.vms.values() {
            let figures = &of.figures;
            let known_ns = figures.running_ns + figures.waiting_ns + figures.halted_ns + figures.io_ns;
            prop_assert!(known_ns <= span_ns * of.lanes.len() as u64, "{known_ns} of {span_ns}");
            let sum = |kind: usize| of.series.bins().iter().map(|bin| bin[kind]).sum::<u64>();
            prop_assert_eq!(sum(RUNNING), figures.running_ns);
            prop_assert_eq!(sum(WAITING), figures.waiting_ns);
            prop_assert_eq!(sum(HALTED) + sum(STOPPED), figures.halted_ns);
            prop_assert_eq!(sum(IO), figures.io_ns);
            prop_assert!(figures.stopped_ns <= span_ns);
        }
        let all = verdicts(&facts, &study);
        prop_assert_eq!(all.len(), study.vms.len());
        for verdict in all {
            prop_assert!(!verdict.sentence.is_empty());
            prop_assert!(verdict.share_percent.is_none_or(|share| (0.0..=100.01).contains(&share)), "{verdict:?}");
            prop_assert!(verdict.since_ns.is_none_or(|ns| ns <= study.span_ns.1), "{verdict:?}");
        }
        for owners in study.cpus.values() {
            let had: u64 = owners.values().flat_map(|series| series.bins()).map(|bin| bin[0]).sum();
            prop_assert!(had <= span_ns);
        }
    }
}
