// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ruling 26, and classification by instruction pointer: critical sections of kernels without annotation.

use unspin_policy::{CountsSeen, EcsClass, PREEMPT_NEED_RESCHED, critical_function};

/// In user mode, or in the kernel without a lock: the count is 0, and bit 31 is either.
fn nothing() -> CountsSeen {
    CountsSeen {
        preempt_count: PREEMPT_NEED_RESCHED,
        ..CountsSeen::default()
    }
}

#[test]
fn the_inverted_bit_is_no_part_of_the_count() {
    assert_eq!(nothing().critical(), 0);
    assert_eq!(CountsSeen::default().critical(), 0, "a reschedule is due");
    for count in [1, 2, 0x100, 0x1_0000, 0x10_0000] {
        for bit in [0, PREEMPT_NEED_RESCHED] {
            let held = CountsSeen {
                preempt_count: bit | count,
                ..nothing()
            };
            assert_eq!(
                held.critical(),
                1,
                "{count:#x}: lock, softirq, interrupt, NMI"
            );
        }
    }
}

#[test]
fn the_idle_tasks_own_count_is_none_but_what_is_above_it() {
    let idle = |preempt_count| CountsSeen {
        preempt_count: PREEMPT_NEED_RESCHED | preempt_count,
        idle: true,
        ..nothing()
    };
    assert_eq!(idle(0).critical(), 0);
    assert_eq!(idle(1).critical(), 0);
    assert_eq!(idle(2).critical(), 1, "it holds a lock");
    assert_eq!(idle(0x1_0001).critical(), 1, "it was interrupted");
}

#[test]
fn readers_of_preemptible_rcu_count_and_negative_depths_do_not() {
    let reads = |rcu_nesting| CountsSeen {
        rcu_nesting,
        ..nothing()
    };
    assert_eq!([0, 1, 7].map(|depth| reads(depth).critical()), [0, 1, 1]);
    assert_eq!([-1, i32::MIN].map(|depth| reads(depth).critical()), [0, 0]);
}

#[test]
fn kinds_add_up() {
    let all = CountsSeen {
        preempt_count: 3,
        idle: false,
        rcu_nesting: 2,
        sleeping: 5,
    };
    assert_eq!(all.critical(), 3);
    let sleeping = CountsSeen {
        sleeping: 1,
        ..nothing()
    };
    assert_eq!(sleeping.critical(), 1);
}

#[test]
fn functions_that_only_run_inside_sections_have_a_class() {
    for (name, class) in [
        ("_raw_spin_lock", EcsClass::NbLhp),
        ("_raw_spin_lock_irqsave", EcsClass::NbLhp),
        ("_raw_read_lock_bh", EcsClass::Rp),
        ("native_queued_spin_lock_slowpath.part.0", EcsClass::NbLhp),
        ("sysvec_apic_timer_interrupt", EcsClass::Icp),
        ("__schedule", EcsClass::NbLhp),
    ] {
        assert_eq!(critical_function(name), Some(class), "{name}");
    }
    // After the unlock interrupts are handled, with the lock free; a longer name is another function.
    for name in [
        "_raw_spin_unlock_irqrestore",
        "_raw_spin_loc",
        "__schedule_bug",
        "queued_spin_lock_slowpath_x",
        "mutex_lock",
        "",
        "*",
    ] {
        assert_eq!(critical_function(name), None, "{name}");
    }
    assert_eq!(critical_function("with\0zero"), None);
}
