// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decision of each policy from facts, also from unknown ones.

use crate::common::{UNKNOWN, facts, seen};
use unspin_policy::steering::{
    Decision, DecisionRecord, Fact, Facts, Memory, Policies, UNSPIN_AGE_UNKNOWN, UNSPIN_ANSWER_NS,
    UNSPIN_ANSWER_SLICES, UNSPIN_AWAITED_BY_SOMEBODY, UNSPIN_AWAITS_NOW, UNSPIN_BUDGET_NS,
    UNSPIN_FACT_KERNEL, UNSPIN_FACT_USER, answer_slices_left, uses_locks,
};

fn policies(names: &str) -> Policies {
    names.parse().expect("policies' names")
}

/// The decision on a yield when the facts are changed like this.
fn to_yield(names: &str, change: impl FnOnce(&mut Facts)) -> Decision {
    let mut facts = facts();
    change(&mut facts);
    policies(names).on_yield(&facts, &mut Memory::default())
}

const LENT: Decision = Decision::Lend(UNSPIN_BUDGET_NS);
const GRANTED: Decision = Decision::Grant(UNSPIN_BUDGET_NS);

#[test]
fn names_are_read_and_printed() {
    for name in Policies::names().filter(|name| *name != "slice") {
        assert_eq!(policies(name).to_string(), name);
        assert_eq!(policies(name).bits().count_ones(), 1);
    }
    assert_eq!(policies("refuse-yields"), Policies::REFUSE_YIELDS);
    assert_eq!(Policies::REFUSE_YIELDS.to_string(), "refuse-yields");
    let both = policies("kernel-exit,loan");
    assert_eq!(both.to_string(), "loan,kernel-exit");
    let in_order = "directed-yield,yield-buddy,lag-credit,debooster";
    assert_eq!(
        policies(in_order).to_string(),
        "debooster,lag-credit,yield-buddy,directed-yield",
        "in the order in which they are asked"
    );
    let error = "loan,lone".parse::<Policies>().expect_err("no such policy");
    assert!(
        error.contains("`lone`") && error.contains("directed-yield"),
        "{error}"
    );
    assert!("".parse::<Policies>().is_err() && "loan,".parse::<Policies>().is_err());
}

/// The table of docs/policies.md has each policy once, in the order in which they are called: that of UNSPIN_POLICIES.
#[test]
fn the_documents_have_the_one_list() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policies.md");
    let page = std::fs::read_to_string(page).expect("docs/policies.md");
    let (_, table) = page.split_once("## All of them").expect("the table");
    let table = table.lines().skip_while(|line| !line.starts_with("| `"));
    let cells = table.map_while(|line| line.strip_prefix("| ")?.split(" | ").next());
    let words = cells.flat_map(|cell| cell.split(['`', ',', '=', ' ']));
    let known: Vec<&str> = Policies::names().collect();
    let documented: Vec<&str> = words.filter(|word| known.contains(word)).collect();
    assert_eq!(documented, known);
}

#[test]
fn none_refuses_and_directed_yield_takes_whom_kvm_proposes() {
    assert_eq!(to_yield("refuse-yields", |_| ()), Decision::Refuse);
    // It has no opinion on yields.
    assert_eq!(to_yield("kernel-exit", |_| ()), Decision::Direct);
    assert_eq!(to_yield("directed-yield", |_| ()), Decision::Direct);
    let runs = |facts: &mut Facts| facts.candidate.descheduled = seen(0);
    assert_eq!(to_yield("directed-yield", runs), Decision::Refuse);
    let who_knows = |facts: &mut Facts| facts.candidate.descheduled = UNKNOWN;
    assert_eq!(to_yield("directed-yield", who_knows), Decision::Refuse);
}

#[test]
fn a_loan_goes_to_who_waits_or_holds_and_to_nobody_else() {
    let critical = |locks| move |facts: &mut Facts| facts.candidate.critical = seen(locks);
    assert_eq!(to_yield("loan", critical(0)), Decision::Refuse);
    assert_eq!(to_yield("loan", critical(1)), LENT);
    assert_eq!(to_yield("loan", critical(u32::MAX)), LENT);
    // The guest has no pv pages: the same as under KVM alone.
    assert_eq!(to_yield("loan", |_| ()), Decision::Direct);
    assert_eq!(to_yield("loan,directed-yield", |_| ()), Decision::Direct);
    assert_eq!(
        to_yield("loan,directed-yield", critical(0)),
        Decision::Refuse
    );
    // However long ago it was seen: it has not run since.
    let old = |facts: &mut Facts| {
        facts.candidate.critical = Fact {
            value: 1,
            age_ns: UNSPIN_AGE_UNKNOWN - 1,
        };
    };
    assert_eq!(to_yield("loan", old), LENT);
    let runs = |facts: &mut Facts| {
        facts.candidate.critical = seen(1);
        facts.candidate.descheduled = seen(0);
    };
    assert_eq!(to_yield("loan", runs), Decision::Refuse);
}

#[test]
fn without_pv_pages_the_kernel_stands_for_waiting_or_holding() {
    let mode = |mode| move |facts: &mut Facts| facts.candidate.mode = seen(mode);
    assert_eq!(to_yield("loan-cpl", mode(UNSPIN_FACT_KERNEL)), LENT);
    assert_eq!(
        to_yield("loan-cpl", mode(UNSPIN_FACT_USER)),
        Decision::Refuse
    );
    assert_eq!(to_yield("loan-cpl", |_| ()), Decision::Direct);
    let spins_itself = |facts: &mut Facts| {
        facts.candidate.mode = seen(UNSPIN_FACT_KERNEL);
        facts.self_.borrows = seen(1);
    };
    assert_eq!(to_yield("loan-cpl", spins_itself), Decision::GiveBack);
    // If the guest has pv pages, they are used first.
    let both = |facts: &mut Facts| {
        facts.candidate.mode = seen(UNSPIN_FACT_KERNEL);
        facts.candidate.critical = seen(0);
    };
    assert_eq!(to_yield("loan,loan-cpl", both), Decision::Refuse);
}

/// A receiver of the spinner's interrupt waits for no lock, and may have been stopped in user mode.
#[test]
fn one_that_has_not_answered_runs_wherever_it_was_stopped() {
    let answers = Decision::Lend(UNSPIN_ANSWER_NS);
    let own_slice = to_yield("yield-buddy", |facts| facts.candidate.descheduled = seen(1));
    let awaited = |value, mode, critical| {
        move |facts: &mut Facts| {
            facts.candidate.awaited = seen(value);
            facts.candidate.mode = seen(mode);
            facts.candidate.critical = critical;
        }
    };
    for (names, critical) in [("loan-cpl", UNKNOWN), ("loan", seen(0)), ("loan", UNKNOWN)] {
        for mode in [UNSPIN_FACT_USER, UNSPIN_FACT_KERNEL] {
            let asked = |awaits: Fact| {
                to_yield(names, |facts| {
                    awaited(1, mode, critical)(facts);
                    facts.candidate.awaits = awaits;
                })
            };
            // It continues what it did, or would spin for an answer itself.
            assert_eq!(asked(UNKNOWN), answers, "{names}");
            assert_eq!(asked(seen(0)), answers, "{names}");
            assert_eq!(asked(seen(UNSPIN_ANSWER_SLICES)), own_slice, "{names}");
        }
    }
    assert!(LENT.is_lock_loan() && !answers.is_lock_loan() && !own_slice.is_lock_loan());
    // The same if no policy that is on decides; `directed-yield` and `refuse-yields` decide otherwise.
    let user_mode = || awaited(1, UNSPIN_FACT_USER, UNKNOWN);
    assert!(
        matches!(own_slice, Decision::YieldBuddy { .. }),
        "{own_slice:?}"
    );
    assert_eq!(to_yield("kernel-exit", user_mode()), answers);
    assert_eq!(to_yield("directed-yield", user_mode()), Decision::Direct);
    assert_eq!(to_yield("refuse-yields", user_mode()), Decision::Refuse);
    // A vCPU that also waits for a lock is lent to: it gives back at unlock.
    assert_eq!(
        to_yield("loan", awaited(1, UNSPIN_FACT_KERNEL, seen(1))),
        LENT
    );
    // Not to a vCPU that has answered, or is answering.
    let user = UNSPIN_FACT_USER;
    assert_eq!(
        to_yield("loan-cpl", awaited(0, user, UNKNOWN)),
        Decision::Refuse
    );
    assert_eq!(
        to_yield("loan", awaited(0, user, seen(0))),
        Decision::Refuse
    );
    let runs = |facts: &mut Facts| {
        awaited(1, user, UNKNOWN)(facts);
        facts.candidate.descheduled = seen(0);
    };
    assert_eq!(to_yield("loan-cpl", runs), Decision::Refuse);
    // A borrower that waits in its slice gives back too.
    let borrows = |facts: &mut Facts| {
        awaited(1, user, UNKNOWN)(facts);
        facts.self_.borrows = seen(1);
    };
    assert_eq!(to_yield("loan-cpl", borrows), Decision::GiveBack);
}

/// Where nobody follows interrupts, one that waits in the candidate's APIC is all that is known.
#[test]
fn one_with_a_pending_interrupt_is_not_refused() {
    let pending = |mode, critical| {
        move |facts: &mut Facts| {
            facts.candidate.awaited = seen(UNSPIN_AWAITED_BY_SOMEBODY);
            facts.candidate.mode = seen(mode);
            facts.candidate.critical = critical;
        }
    };
    let (user, kernel) = (UNSPIN_FACT_USER, UNSPIN_FACT_KERNEL);
    let answers = Decision::Lend(UNSPIN_ANSWER_NS);
    for (names, facts, decision) in [
        // Instead of a refusal.
        ("loan", pending(user, seen(0)), answers),
        ("loan", pending(user, UNKNOWN), answers),
        ("loan,loan-cpl", pending(kernel, UNKNOWN), answers),
        ("loan-cpl", pending(user, UNKNOWN), answers),
        ("loan-cpl", pending(kernel, UNKNOWN), answers),
        // A lock's waiter is lent to as before.
        ("loan", pending(user, seen(1)), LENT),
        // Instead of the slice for good.
        ("kernel-exit", pending(user, UNKNOWN), answers),
        ("directed-yield", pending(user, UNKNOWN), Decision::Direct),
        ("refuse-yields", pending(user, seen(0)), Decision::Refuse),
    ] {
        assert_eq!(to_yield(names, facts), decision, "{names}");
    }
    let runs = |facts: &mut Facts| {
        pending(user, seen(0))(facts);
        facts.candidate.descheduled = seen(0);
    };
    assert_eq!(to_yield("loan", runs), Decision::Refuse);
}

/// It spins in the kernel for an answer, whether or not there was a pause-loop exit.
#[test]
fn no_grace_for_one_that_waits_for_an_answer() {
    for (awaits, decision) in [
        (UNKNOWN, Decision::Grant(UNSPIN_BUDGET_NS)),
        (seen(0), Decision::Grant(UNSPIN_BUDGET_NS)),
        (
            seen(UNSPIN_ANSWER_SLICES),
            Decision::Grant(UNSPIN_BUDGET_NS),
        ),
        (seen(UNSPIN_AWAITS_NOW), Decision::Pass),
    ] {
        let mut facts = facts();
        facts.self_.spun = seen(0);
        facts.self_.mode = seen(UNSPIN_FACT_KERNEL);
        facts.self_.awaits = awaits;
        let end = policies("kernel-exit").on_slice_end(&facts, &mut Memory::default());
        assert_eq!(end, decision, "{awaits:?}");
    }
}

/// A vCPU uses locks from when it is first seen to until 200 ms after the last time.
#[test]
fn a_vcpu_uses_locks_for_a_while_after_it_was_seen_to() {
    let last_ns = 5_000_000_000;
    for (lock_ns, now_ns, is) in [
        (None, 100_000_000, false),
        (Some(last_ns), last_ns, true),
        (Some(last_ns), last_ns + 199_999_999, true),
        (Some(last_ns), last_ns + 200_000_000, false),
        (Some(last_ns), last_ns + 200_000_001, false),
        (Some(last_ns), last_ns + 60_000_000_000, false),
        (Some(0), 100_000_000, true),
    ] {
        assert_eq!(uses_locks(lock_ns, now_ns, 0), is, "{lock_ns:?} {now_ns}");
        assert!(!uses_locks(lock_ns, now_ns, 1), "{lock_ns:?} {now_ns}");
    }
}

/// The slice after one in which it waited for an answer is not a long one, the next but one is.
#[test]
fn slices_are_long_again_once_no_answer_was_awaited_in_one() {
    let uses_locks = |answer_slices| uses_locks(Some(1), 2, answer_slices);
    let next = answer_slices_left(UNSPIN_ANSWER_SLICES);
    assert!(!uses_locks(next));
    let next_but_one = answer_slices_left(next);
    assert!(uses_locks(next_but_one));
    assert_eq!(answer_slices_left(next_but_one), next_but_one);
}

/// Under loan-cpl nobody knows why a vCPU is in the kernel; most spinners of a VM that waits for answers wait for answers.
#[test]
fn who_waits_for_answers_lends_to_no_spinner() {
    for (awaits, yielded, decision) in [
        (seen(0), UNKNOWN, LENT),
        (seen(0), seen(1), LENT),
        (UNKNOWN, seen(1), LENT),
        (seen(1), UNKNOWN, LENT),
        (seen(1), seen(1), Decision::Refuse),
        (seen(UNSPIN_ANSWER_SLICES), seen(1), Decision::Refuse),
    ] {
        let to_one_in_the_kernel = to_yield("loan-cpl", |facts| {
            facts.candidate.mode = seen(UNSPIN_FACT_KERNEL);
            facts.candidate.yielded = yielded;
            facts.self_.awaits = awaits;
        });
        assert_eq!(to_one_in_the_kernel, decision, "{awaits:?} {yielded:?}");
    }
}

#[test]
fn one_grace_a_slice_in_the_kernel_and_none_for_spinners() {
    let policy = policies("kernel-exit");
    let mut memory = Memory::default();
    let mut facts = facts();
    assert_eq!(policy.on_slice_end(&facts, &mut memory), Decision::Pass);
    facts.self_.mode = seen(UNSPIN_FACT_USER);
    assert_eq!(policy.on_slice_end(&facts, &mut memory), Decision::Pass);
    facts.self_.mode = seen(UNSPIN_FACT_KERNEL);
    facts.self_.spun = seen(1);
    assert_eq!(policy.on_slice_end(&facts, &mut memory), Decision::Pass);
    facts.self_.spun = seen(0);
    // What the guest publishes, against what the CPU shows.
    facts.self_.critical = seen(0);
    assert_eq!(policy.on_slice_end(&facts, &mut memory), Decision::Pass);
    facts.self_.critical = seen(2);
    facts.self_.mode = UNKNOWN;
    assert_eq!(policy.on_slice_end(&facts, &mut memory), GRANTED);
    assert_eq!(policy.on_slice_end(&facts, &mut memory), Decision::Pass);
    policy.on_slice_start(&facts, &mut memory);
    facts.self_.critical = UNKNOWN;
    facts.self_.mode = seen(UNSPIN_FACT_KERNEL);
    assert_eq!(policy.on_slice_end(&facts, &mut memory), GRANTED);
    // No other policy prolongs slices.
    for other in ["refuse-yields", "loan", "loan-cpl", "directed-yield"] {
        let mut memory = Memory::default();
        let answer = policies(other).on_slice_end(&facts, &mut memory);
        assert_eq!(answer, Decision::Pass, "{other}");
    }
}

#[test]
fn who_borrows_goes_on_until_it_has_left_the_lock_or_the_kernel() {
    let look = |names: &str, critical, mode| {
        let mut facts = facts();
        facts.self_.borrows = seen(1);
        facts.self_.critical = critical;
        facts.self_.mode = mode;
        policies(names).on_poll(&facts, &mut Memory::default())
    };
    let (kernel, user) = (seen(UNSPIN_FACT_KERNEL), seen(UNSPIN_FACT_USER));
    assert_eq!(look("loan", seen(1), user), Decision::Pass);
    assert_eq!(look("loan", seen(0), kernel), Decision::GiveBack);
    assert_eq!(look("loan", UNKNOWN, user), Decision::Pass);
    assert_eq!(look("loan-cpl", UNKNOWN, user), Decision::GiveBack);
    assert_eq!(look("loan-cpl", UNKNOWN, kernel), Decision::Pass);
    assert_eq!(look("loan-cpl", UNKNOWN, UNKNOWN), Decision::Pass);
    assert_eq!(look("kernel-exit", seen(1), user), Decision::Pass);
    assert_eq!(look("kernel-exit", seen(0), kernel), Decision::GiveBack);
    assert_eq!(look("kernel-exit", UNKNOWN, user), Decision::GiveBack);
    assert_eq!(look("kernel-exit", UNKNOWN, kernel), Decision::Pass);
    assert_eq!(look("kernel-exit", UNKNOWN, UNKNOWN), Decision::Pass);
    assert_eq!(
        look("directed-yield", seen(0), user),
        Decision::Pass,
        "no vCPU borrows"
    );
}

#[test]
fn a_record_replays_and_one_that_was_changed_does_not() {
    let mut record = DecisionRecord {
        event: 2, // on_slice_end
        policies: policies("kernel-exit").bits(),
        facts: facts(),
        ..DecisionRecord::default()
    };
    record.facts.self_.mode = seen(UNSPIN_FACT_KERNEL);
    let mut memory = Memory::default();
    let decided = policies("kernel-exit").on_slice_end(&record.facts, &mut memory);
    assert_eq!(decided, GRANTED);
    record.decision.action = 4; // GRANT
    record.decision.budget_ns = UNSPIN_BUDGET_NS;
    record.after = memory;
    assert!(record.replays());
    assert_eq!(record.decided(), GRANTED);
    for change in [
        |record: &mut DecisionRecord| record.decision.budget_ns += 1,
        |record: &mut DecisionRecord| record.after = Memory::default(),
        |record: &mut DecisionRecord| record.facts.self_.mode = seen(UNSPIN_FACT_USER),
        |record: &mut DecisionRecord| record.policies = 0,
    ] {
        let mut changed = record;
        change(&mut changed);
        assert!(!changed.replays());
    }
}
