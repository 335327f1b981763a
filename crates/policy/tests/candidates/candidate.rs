// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rulings 31 and 32: VEE'21's Figures 1 and 2, lost opportunity, overboost, strict boost and its options.

use unspin_policy::{
    CandidateRule, CandidateState, Spinner, Vector, Verdict, Walk, Where, YieldFacts, verdict,
};

const KERNEL: Option<Where> = Some(Where::Kernel);
const USER: Option<Where> = Some(Where::User);

fn resource_waiter(mode: Option<Where>) -> YieldFacts {
    YieldFacts::new(CandidateState::Preempted, mode)
}

fn lock_waiter(eligible: bool) -> YieldFacts {
    YieldFacts {
        spins: true,
        eligible,
        ..resource_waiter(KERNEL)
    }
}

fn halted() -> YieldFacts {
    YieldFacts::new(CandidateState::Halted, KERNEL)
}

fn woken() -> YieldFacts {
    YieldFacts::new(CandidateState::Woken, KERNEL)
}

fn receiver(facts: YieldFacts) -> YieldFacts {
    YieldFacts {
        receiver: Some(true),
        ipi_age_ns: Some(1000),
        ..facts
    }
}

fn takes(rule: CandidateRule, candidate: YieldFacts) -> bool {
    verdict(&Spinner::new(rule, KERNEL), &candidate).take
}

/// One pause-loop exit of `own`, with a scheduler that honours every request. Returns the boosted vCPU.
fn exit(
    rule: CandidateRule,
    vcpus: &mut [YieldFacts],
    own: u32,
    last_boosted: &mut u32,
) -> Option<u32> {
    let spinner = Spinner::new(rule, KERNEL);
    let mut walk = Walk::new(rule, own, *last_boosted, vcpus.len() as u32);
    while let Some(vcpu) = walk.next_vcpu() {
        let candidate = &mut vcpus[vcpu as usize];
        let Verdict { take, toggle, mark } = verdict(&spinner, candidate);
        candidate.eligible ^= toggle;
        candidate.passed |= mark;
        if take {
            walk.tried(vcpu, 1);
        }
    }
    *last_boosted = walk.boosted().unwrap_or(*last_boosted);
    walk.boosted()
}

/// "Lock-waiter vCPU 3 (turned into checked) and non-runnable vCPU 4 are skipped, and resource-waiter vCPU 5 is boosted. Next,
/// lock-waiter vCPU 6 is boosted because it is already checked."
#[test]
fn figure_1() {
    for rule in [
        CandidateRule::Kvm5_2,
        CandidateRule::Kvm5_3,
        CandidateRule::Kvm7_2,
    ] {
        let running = YieldFacts::new(CandidateState::Running, KERNEL);
        let mut vcpus = [
            running,
            running,
            running,
            lock_waiter(false),
            halted(),
            resource_waiter(KERNEL),
            lock_waiter(true),
            running,
        ];
        let mut last_boosted = 2;
        assert_eq!(exit(rule, &mut vcpus, 0, &mut last_boosted), Some(5));
        assert!(vcpus[3].eligible, "checked");
        assert_eq!(exit(rule, &mut vcpus, 0, &mut last_boosted), Some(6));
        assert!(!vcpus[6].eligible, "the label is removed");
        // and vCPU 3 has its slice now, for it was checked
        vcpus[5] = running;
        assert_eq!(exit(rule, &mut vcpus, 0, &mut last_boosted), Some(3));
    }
}

/// The worst case: vCPU 0 waits for vCPU 7, a lock waiter, which is boosted in the second round: roughly 2 x vCPUs attempts.
#[test]
fn figure_2() {
    let mut vcpus = vec![resource_waiter(KERNEL); 8];
    vcpus[7] = lock_waiter(false);
    let mut last_boosted = 0;
    let boosted: Vec<_> = (0..13)
        .map(|_| exit(CandidateRule::Kvm5_3, &mut vcpus, 0, &mut last_boosted).expect("one"))
        .collect();
    assert_eq!(boosted, [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7]);
    assert!(boosted.len() <= 2 * vcpus.len());
}

/// Section 3.3: a receiver in user mode is never boosted, so the sender exits again and again; strict boost takes it.
#[test]
fn lost_opportunity() {
    let in_user_mode = receiver(resource_waiter(USER));
    for rule in [
        CandidateRule::Kvm5_2,
        CandidateRule::Kvm5_3,
        CandidateRule::AvoidOverboost,
    ] {
        assert!(!takes(rule, in_user_mode), "{}", rule.name());
    }
    assert!(takes(CandidateRule::Strict, in_user_mode));
    assert!(!takes(CandidateRule::Strict, resource_waiter(USER)));
    assert!(takes(CandidateRule::Usermode, resource_waiter(USER)));
    // today's kernel takes it where the hardware's APIC shows the interrupt, whichever vCPU sent it
    let posted = YieldFacts {
        posted: Some(true),
        ..resource_waiter(USER)
    };
    assert!(takes(CandidateRule::Kvm7_2, posted) && !takes(CandidateRule::Kvm5_3, posted));
    // the rule is for spinners in kernel mode; AMD exits from user mode as well
    let from_user = Spinner::new(CandidateRule::Kvm7_2, USER);
    assert!(verdict(&from_user, &resource_waiter(USER)).take);
}

/// Section 3.3: a halted vCPU to which another vCPU sent an interrupt. Strict boost takes it only in its second round.
#[test]
fn overboost() {
    assert!(takes(CandidateRule::Kvm5_3, woken()) && takes(CandidateRule::Kvm7_2, woken()));
    assert!(
        !takes(CandidateRule::Kvm5_2, woken()),
        "5.2 knows preempted vCPUs only"
    );
    assert!(!takes(CandidateRule::AvoidOverboost, woken()));
    assert!(takes(CandidateRule::AvoidOverboost, receiver(woken())));
    assert!(takes(CandidateRule::Strict, receiver(woken())));
    let first = verdict(&Spinner::new(CandidateRule::Strict, KERNEL), &woken());
    assert_eq!(
        first,
        Verdict {
            take: false,
            toggle: false,
            mark: true
        }
    );
    assert!(takes(
        CandidateRule::Strict,
        YieldFacts {
            passed: true,
            ..woken()
        }
    ));
    assert!(!takes(
        CandidateRule::AvoidOverboost,
        YieldFacts {
            passed: true,
            ..woken()
        }
    ));
    // without a pending event nothing makes it run
    for rule in CandidateRule::ALL {
        let idle = YieldFacts {
            pending: Some(false),
            passed: true,
            ..receiver(woken())
        };
        assert!(
            !takes(rule, idle) && !takes(rule, halted()),
            "{}",
            rule.name()
        );
    }
}

/// Section 4.2: for a spinlock first resource waiters, then vCPUs that were halted.
#[test]
fn strict_boost_prefers_resource_waiters() {
    let mut vcpus = [
        resource_waiter(KERNEL),
        woken(),
        resource_waiter(KERNEL),
        woken(),
    ];
    let mut last_boosted = 0;
    let mut exit = || exit(CandidateRule::Strict, &mut vcpus, 0, &mut last_boosted);
    assert_eq!([exit(), exit(), exit()], [Some(2), Some(1), Some(2)]);
}

#[test]
fn options_of_strict_boost() {
    let strict = Spinner::new(CandidateRule::Strict, KERNEL);
    let rescheduled = YieldFacts {
        vector: Vector::Reschedule,
        ..receiver(resource_waiter(USER))
    };
    let called = YieldFacts {
        vector: Vector::FunctionCall,
        ..rescheduled
    };
    assert!(verdict(&strict, &rescheduled).take);
    assert!(!verdict(&strict.ignoring_reschedules(), &rescheduled).take);
    assert!(verdict(&strict.ignoring_reschedules(), &called).take);

    let waits = strict.receivers_only(Some(true));
    let waits_not = strict.receivers_only(Some(false));
    assert!(!verdict(&waits, &resource_waiter(KERNEL)).take);
    assert!(
        !verdict(
            &waits,
            &YieldFacts {
                passed: true,
                ..woken()
            }
        )
        .take
    );
    assert!(verdict(&waits, &called).take && verdict(&waits, &receiver(woken())).take);
    assert!(verdict(&waits_not, &resource_waiter(KERNEL)).take);
}

/// Li 2026, patches 9 and 10: confirmed receivers of the last 50 ms, then vCPUs in kernel mode; last all preempted
/// ones.
#[test]
fn the_proposal_of_2026() {
    let first = Spinner::new(CandidateRule::Proposed2026, KERNEL);
    let aged = |ns| YieldFacts {
        ipi_age_ns: ns,
        ..receiver(resource_waiter(USER))
    };
    assert!(verdict(&first, &aged(Some(50_000_000))).take);
    assert!(!verdict(&first, &aged(Some(50_000_001))).take);
    assert!(!verdict(&first, &aged(None)).take);
    assert!(verdict(&first, &resource_waiter(KERNEL)).take);
    assert!(!verdict(&first, &woken()).take, "preempted, or a receiver");
    assert!(
        verdict(
            &first,
            &YieldFacts {
                posted: Some(true),
                ..woken()
            }
        )
        .take
    );
    let second = first.second_round();
    assert!(verdict(&second, &aged(None)).take);
    assert!(!verdict(&second, &receiver(woken())).take);
}
