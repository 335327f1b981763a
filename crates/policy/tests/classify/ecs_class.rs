// SPDX-License-Identifier: MIT OR Apache-2.0
//! eCS: Figure 2 (a) and (b), the extra schedule (ruling 22), classes of preemptions (ruling 23), eSchdSpin (ruling 24).

use proptest::prelude::*;
use unspin_policy::{
    ECS_EXTRA_NS, Ecs, EcsAccount, EcsClass, EcsCounters, eschd_spins, pcpu_overloaded, schd_spins,
};

/// Figure 2 (a): vCPU 2 enters a critical section (1, 2); the hypervisor, before scheduling it out, checks its states (3) and
/// lets it run for extra time; it leaves the section, its count falls; at the end it is scheduled out.
#[test]
fn figure_2_a() {
    let mut counters = EcsCounters::default();
    let critical = |counters: &EcsCounters| {
        let (non_preemptable, preemptable) = counters.sums();
        Some(non_preemptable + preemptable)
    };
    let mut vcpu_2 = Ecs::new(false);
    vcpu_2.on_slice_start();
    assert_eq!(
        vcpu_2.on_slice_end(critical(&counters)),
        None,
        "in no section: scheduled out"
    );
    counters.spin += 1;
    assert_eq!(vcpu_2.on_slice_end(critical(&counters)), Some(1_000_000));
    counters.spin -= 1;
    assert!(
        !vcpu_2.on_poll(critical(&counters)),
        "the paper's form keeps its extra schedule"
    );
    assert_eq!(vcpu_2.on_slice_end(critical(&counters)), None);
    // blocking locks count as well
    vcpu_2.on_slice_start();
    counters.mutex += 1;
    assert_eq!(vcpu_2.on_slice_end(critical(&counters)), Some(ECS_EXTRA_NS));
}

/// "only once during that schedule boundary as rescheduling extends the boundary" (section 3.2).
#[test]
fn never_twice_in_a_row() {
    for give_back in [false, true] {
        let mut vcpu = Ecs::new(give_back);
        for _ in 0..3 {
            vcpu.on_slice_start();
            assert_eq!(vcpu.on_slice_end(Some(1)), Some(ECS_EXTRA_NS));
            assert_eq!(vcpu.on_slice_end(Some(1)), None);
            assert_eq!(vcpu.on_slice_end(Some(2)), None);
        }
        vcpu.on_slice_start();
        assert_eq!(vcpu.on_slice_end(None), None, "not known is not critical");
        assert_eq!(vcpu.on_slice_end(Some(1)), Some(ECS_EXTRA_NS));
    }
}

/// Ours: it leaves when its counters come to 0, and not while they are not known.
#[test]
fn give_back() {
    let mut vcpu = Ecs::new(true);
    vcpu.on_slice_start();
    assert_eq!(vcpu.on_slice_end(Some(2)), Some(ECS_EXTRA_NS));
    assert!(!vcpu.on_poll(Some(1)));
    assert!(!vcpu.on_poll(None));
    assert!(vcpu.on_poll(Some(0)));
}

/// Figure 2 (b): the hypervisor writes pcpu_overloaded at each schedule boundary (1); the waiter reads it (2) and keeps on
/// spinning while its pCPU is not overloaded (3), else it yields.
#[test]
fn figure_2_b() {
    assert!(!pcpu_overloaded(0));
    assert!(pcpu_overloaded(1) && pcpu_overloaded(7));
    assert!(eschd_spins(1, pcpu_overloaded(0)));
    assert!(!eschd_spins(1, pcpu_overloaded(1)));
    // with another task in the guest it sleeps, whatever the host reports
    assert!(!eschd_spins(2, pcpu_overloaded(0)));
    // SchdSpin has no information about the host
    assert!(schd_spins(1) && !schd_spins(2));
}

/// 85 to 100 % of preemptions avoided (abstract).
#[test]
fn avoided_share() {
    let account = |boundaries, descheduled| EcsAccount {
        boundaries,
        descheduled,
        by_wakeup: 5,
    };
    assert_eq!(account(1000, 142).avoided_ppm(), Some(858_000));
    assert_eq!(account(1000, 0).avoided_ppm(), Some(1_000_000));
    assert_eq!(account(1000, 1000).avoided_ppm(), Some(0));
    assert_eq!(account(0, 0).avoided_ppm(), None);
    assert_eq!(account(1, 2).avoided_ppm(), None);
}

#[test]
fn classes_by_precedence() {
    let all = EcsCounters {
        spin: 1,
        rwlock_write: 1,
        rwlock_read: 1,
        rcu: 1,
        interrupt: 1,
        mutex: 1,
        rwsem_write: 1,
        rwsem_read: 1,
    };
    assert_eq!(all.sums(), (5, 3));
    let cases = [
        (all, EcsClass::Icp),
        (
            EcsCounters {
                interrupt: 0,
                ..all
            },
            EcsClass::NbLhp,
        ),
        (
            EcsCounters {
                interrupt: 0,
                spin: 0,
                ..all
            },
            EcsClass::NbLhp,
        ),
        (
            EcsCounters {
                rcu: 1,
                mutex: 1,
                rwlock_read: 2,
                ..Default::default()
            },
            EcsClass::Rrp,
        ),
        (
            EcsCounters {
                mutex: 1,
                rwsem_read: 1,
                ..Default::default()
            },
            EcsClass::BLhp,
        ),
        (
            EcsCounters {
                rwsem_write: 1,
                rwlock_read: 1,
                ..Default::default()
            },
            EcsClass::BLhp,
        ),
        (
            EcsCounters {
                rwlock_read: 1,
                ..Default::default()
            },
            EcsClass::Rp,
        ),
        (
            EcsCounters {
                rwsem_read: 1,
                ..Default::default()
            },
            EcsClass::Rp,
        ),
        (EcsCounters::default(), EcsClass::None),
    ];
    for (counters, class) in cases {
        assert_eq!(counters.class(), class, "{counters:?}");
    }
    assert_eq!(
        all.classes().map(EcsClass::name).collect::<Vec<_>>(),
        ["ICP", "NB-LHP", "RRP", "B-LHP", "RP"]
    );
    assert_eq!(
        EcsCounters::default().classes().collect::<Vec<_>>(),
        [EcsClass::None]
    );
}

proptest! {
    /// Each preemption counts once, as the first of those that apply; and it counts exactly when a sum is above 0.
    #[test]
    fn the_first_that_applies(counts in prop::array::uniform8(0u32..3)) {
        let [spin, rwlock_write, rwlock_read, rcu, interrupt, mutex, rwsem_write, rwsem_read] = counts;
        let counters = EcsCounters { spin, rwlock_write, rwlock_read, rcu, interrupt, mutex, rwsem_write, rwsem_read };
        let classes: Vec<_> = counters.classes().collect();
        prop_assert_eq!(Some(&counters.class()), classes.first());
        let (non_preemptable, preemptable) = counters.sums();
        prop_assert_eq!(non_preemptable + preemptable, counts.iter().sum::<u32>());
        prop_assert_eq!(classes.contains(&EcsClass::None), counts == [0; 8]);
        let applies = [interrupt > 0, spin + rwlock_write > 0, rcu > 0, mutex + rwsem_write > 0, rwlock_read + rwsem_read > 0];
        for (class, applies) in EcsClass::ALL.iter().zip(applies) {
            prop_assert_eq!(classes.contains(class), applies, "{}", class.name());
        }
    }
}
