// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every stream: spin time is CPU time, it is counted once, and every moment of it has a cause.

use proptest::prelude::*;
use unspin_analysis::{
    explain::attribution::{EVENTS_MAX, Explainer, Options},
    waits::{presence, spin_locations::Naming},
};
use unspin_events::{Event, GuestMode, IpiForm, What};

fn mode() -> impl Strategy<Value = Option<GuestMode>> {
    prop_oneof![
        Just(None),
        Just(Some(GuestMode::User)),
        Just(Some(GuestMode::Kernel))
    ]
}

fn rip() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        Just(None),
        Just(Some(0x2000)),
        Just(Some(0x9000)),
        Just(Some(0x4_0000))
    ]
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        3 => Just(What::SwitchIn { previous_thread: 1, previous_vm: None }),
        3 => (mode(), rip(), any::<bool>(), any::<bool>()).prop_map(
            |(mode, guest_rip, runnable, preempt)| What::SwitchOut {
                next_thread: 1, next_vm: None, runnable, preempt, mode, exit_code: None, guest_rip,
            }
        ),
        6 => (rip(), mode(), 0u32..60_000, 0u16..3, 0u16..3).prop_map(
            |(guest_rip, mode, inside_ns, other_exits, interrupt_exits)| What::PauseExit {
                guest_rip, mode, window: Some(200), inside_ns, other_exits, interrupt_exits,
            }
        ),
        6 => Just(What::PauseEntry { outside_ns: 2_000, handling_ns: 2_000 }),
        2 => (0u16..4).prop_map(|receiver_vcpu| What::Ipi {
            receiver_vcpu, vector: 0x21, delivery_mode: 0, form: IpiForm::Physical, destination: None,
        }),
        1 => (any::<[u64; 3]>()).prop_map(|arguments| What::PvPage { arguments }),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0u64..20_000, 0u32..2, 0u16..4, 0u16..2, what());
    prop::collection::vec(event, 1..400).prop_map(|events| {
        let mut time_ns = 1_000_000;
        let events = events.into_iter().map(|(after_ns, vm, vcpu, cpu, what)| {
            time_ns += after_ns;
            Event {
                time_ns,
                vm: Some(vm),
                vcpu: Some(vcpu),
                thread: 100 + 10 * vm + u32::from(vcpu),
                cpu,
                what,
            }
        });
        events.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn spin_time_is_cpu_time_and_has_a_cause(events in events(), ipis_seen in any::<bool>()) {
        let mut explainer = Explainer::new(Options {
            naming: Naming::default(),
            ipis_seen,
            minimum_wait_ns: 0,
            waits_max: usize::MAX / 8,
            events_max: EVENTS_MAX,
            keep_slices: true,
        });
        events.iter().for_each(|event| explainer.push(*event));
        let explanation = explainer.finish();
        for (&vm, of) in &explanation.vms {
            let mut slices = of.slices.clone();
            slices.sort_by_key(|slice| (slice.vcpu, slice.begin_ns));
            let spin_time: u64 = slices.iter().map(|slice| slice.end_ns - slice.begin_ns).sum();
            prop_assert_eq!(spin_time, of.spin_time.total());
            prop_assert_eq!(spin_time, of.blame.values().sum::<u64>());
            prop_assert_eq!(spin_time, of.longest.iter().map(|wait| wait.spin_time.total()).sum::<u64>());
            prop_assert_eq!(spin_time, of.loops.values().map(|sum| sum.spin_time.total()).sum::<u64>());
            for pair in slices.windows(2) {
                prop_assert!(
                    pair[0].vcpu != pair[1].vcpu || pair[0].end_ns <= pair[1].begin_ns,
                    "counted twice: {:?}", pair
                );
            }
            let presence = presence::of_vm(vm, &events);
            for slice in &slices {
                prop_assert!(slice.begin_ns < slice.end_ns);
                let on = presence[&slice.vcpu].on_between(slice.begin_ns, slice.end_ns);
                let on: u64 = on.iter().map(|(begin, end)| end - begin).sum();
                prop_assert_eq!(on, slice.end_ns - slice.begin_ns, "spun off its CPU: {:?}", slice);
                prop_assert!(slice.blamed != Some(slice.vcpu) || !slice.cause.is_preemption());
            }
        }
    }
}
