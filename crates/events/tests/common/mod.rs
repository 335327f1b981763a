// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random events for the tests.

use proptest::prelude::*;
use unspin_events::{Event, What, log::Metadata};

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
        (any::<u32>(), vm(), any::<bool>()).prop_map(|(next_thread, next_vm, runnable)| {
            What::SwitchOut {
                next_thread,
                next_vm,
                runnable,
            }
        }),
        any::<u32>().prop_map(|waker_thread| What::SchedWakeup { waker_thread }),
        (known(), prop::option::of(any::<bool>())).prop_map(|(guest_rip, kernel_mode)| {
            What::PauseExit {
                guest_rip,
                kernel_mode,
            }
        }),
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
    ]
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
