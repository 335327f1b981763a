// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random events for the tests.

use proptest::prelude::*;
use unspin_events::{Event, GuestMode, IpiForm, What, log::Metadata};

/// Metadata of a made-up run.
pub fn metadata() -> Metadata {
    Metadata {
        commit: "c0ffee".to_owned(),
        scenario_hash: "ab".repeat(32),
        seed: 42,
        machine: "a test".to_owned(),
        lost_events: 0,
    }
}

/// A number that is never "no VM".
fn vm() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(0u32..u32::MAX)
}

fn known() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(0u64..u64::MAX)
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        (any::<u32>(), vm()).prop_map(|(previous_thread, previous_vm)| What::SwitchIn {
            previous_thread,
            previous_vm
        }),
        switch_out(),
        any::<u32>().prop_map(|waker_thread| What::SchedWakeup { waker_thread }),
        pause_exit(),
        Just(What::KvmVcpuOnSpin),
        (any::<i64>(), prop::option::of(any::<u16>()), any::<u32>()).prop_map(
            |(result, target_vcpu, target_thread)| What::YieldTo {
                result,
                target_vcpu,
                target_thread
            }
        ),
        known().prop_map(|exit_code| What::KvmExit { exit_code }),
        any::<u64>().prop_map(|outside_ns| What::KvmEntry { outside_ns }),
        (any::<u64>(), any::<u64>(), any::<u32>()).prop_map(|(wait_ns, target, wait_kind)| {
            What::GuestWait {
                wait_ns,
                target,
                wait_kind,
            }
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(outside_ns, handling_ns)| What::PauseEntry {
            outside_ns,
            handling_ns
        }),
        ipi(),
        (any::<u64>(), any::<u32>())
            .prop_map(|(events, lost_kind)| What::Lost { events, lost_kind }),
        any::<[u64; 3]>().prop_map(|arguments| What::PvPage { arguments }),
    ]
}

fn mode() -> impl Strategy<Value = Option<GuestMode>> {
    prop::option::of(prop_oneof![Just(GuestMode::User), Just(GuestMode::Kernel)])
}

fn half() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(0u32..u32::MAX)
}

fn switch_out() -> impl Strategy<Value = What> {
    (
        any::<u32>(),
        vm(),
        any::<(bool, bool)>(),
        mode(),
        half(),
        known(),
    )
        .prop_map(
            |(next_thread, next_vm, (runnable, preempt), mode, exit_code, guest_rip)| {
                What::SwitchOut {
                    next_thread,
                    next_vm,
                    runnable,
                    preempt,
                    mode,
                    exit_code,
                    guest_rip,
                }
            },
        )
}

fn pause_exit() -> impl Strategy<Value = What> {
    (known(), mode(), half(), any::<(u32, u16, u16)>()).prop_map(
        |(guest_rip, mode, window, (inside_ns, other_exits, interrupt_exits))| What::PauseExit {
            guest_rip,
            mode,
            window,
            inside_ns,
            other_exits,
            interrupt_exits,
        },
    )
}

fn ipi() -> impl Strategy<Value = What> {
    let form = prop::sample::select(vec![
        IpiForm::Unknown,
        IpiForm::Physical,
        IpiForm::Logical,
        IpiForm::OneSelf,
        IpiForm::All,
        IpiForm::AllButSelf,
        IpiForm::Hypercall,
    ]);
    (any::<(u16, u8, u8)>(), form, known()).prop_map(
        |((receiver_vcpu, vector, delivery_mode), form, destination)| What::Ipi {
            receiver_vcpu,
            vector,
            delivery_mode,
            form,
            destination,
        },
    )
}

/// Any event.
pub fn any_event() -> impl Strategy<Value = Event> {
    (
        0u64..1_000_000,
        vm(),
        prop::option::of(0u16..u16::MAX),
        any::<u32>(),
        any::<u16>(),
        what(),
    )
        .prop_map(|(time_ns, vm, vcpu, thread, cpu, what)| Event {
            time_ns,
            vm,
            vcpu,
            thread,
            cpu,
            what,
        })
}
