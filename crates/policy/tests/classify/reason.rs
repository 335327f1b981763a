// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rulings 33 and 34: which facts decide the reason of an exit, and which do not.

use unspin_policy::{
    IpiEvidence, Reason, ReasonFacts, Symbol, Vector, Where, linux_vector, may_wait_for_answers,
    symbol_of,
};

const IPIS: [IpiEvidence; 4] = [
    IpiEvidence::NotKnown,
    IpiEvidence::None,
    IpiEvidence::Answered,
    IpiEvidence::Open,
];
const VECTORS: [Vector; 4] = [
    Vector::NotKnown,
    Vector::FunctionCall,
    Vector::Reschedule,
    Vector::Other,
];

/// `with` of `all` exits have an open IPI, none has an answered one.
fn facts(ipi: IpiEvidence, vector: Vector, with: u64, all: u64) -> ReasonFacts {
    ReasonFacts {
        symbol: None,
        mode: Some(Where::Kernel),
        ipi,
        vector,
        location_open: with,
        location_answered: 0,
        location_exits: all,
    }
}

#[test]
fn a_symbol_decides_whatever_else_is_known() {
    let symbols = [
        (Symbol::Spinlock, Reason::Spinlock),
        (Symbol::FunctionCall, Reason::FunctionCall),
        (Symbol::Delay, Reason::Delay),
        (Symbol::Other, Reason::Other),
    ];
    for (symbol, reason) in symbols {
        for ipi in IPIS {
            for vector in VECTORS {
                for mode in [None, Some(Where::User), Some(Where::Kernel)] {
                    let given = ReasonFacts {
                        symbol: Some(symbol),
                        mode,
                        ..facts(ipi, vector, 5, 10)
                    };
                    assert_eq!(given.reason(), reason);
                }
            }
        }
    }
}

#[test]
fn without_symbols() {
    use IpiEvidence::{Answered, None, NotKnown, Open};
    let table = [
        // Most exits at a location follow an IPI: then all are taken for function calls, also those that share another
        // vCPU's request.
        (Open, Vector::NotKnown, 10, 10, Reason::FunctionCall),
        (Answered, Vector::NotKnown, 6, 10, Reason::FunctionCall),
        (None, Vector::NotKnown, 6, 10, Reason::FunctionCall),
        (NotKnown, Vector::NotKnown, 6, 10, Reason::FunctionCall),
        // Half are not most: an IPI alone proves nothing, since some function calls are not waited for.
        (None, Vector::NotKnown, 5, 10, Reason::Spinlock),
        (Open, Vector::NotKnown, 5, 10, Reason::Spinlock),
        (Open, Vector::FunctionCall, 1, 10, Reason::Spinlock),
        (Answered, Vector::FunctionCall, 1, 10, Reason::Spinlock),
        (Open, Vector::Reschedule, 0, 10, Reason::Spinlock),
        (Open, Vector::Other, 0, 10, Reason::Spinlock),
        // IPIs that were not seen, and locations that are not known.
        (NotKnown, Vector::NotKnown, 0, 0, Reason::Unknown),
        (NotKnown, Vector::NotKnown, 1, 10, Reason::Unknown),
        (None, Vector::NotKnown, 0, 0, Reason::Spinlock),
        (Open, Vector::NotKnown, 0, 0, Reason::Unknown),
        (Open, Vector::FunctionCall, 0, 0, Reason::FunctionCall),
        (Open, Vector::NotKnown, 11, 10, Reason::Spinlock),
    ];
    for (ipi, vector, with, all, reason) in table {
        let given = facts(ipi, vector, with, all);
        assert_eq!(given.reason(), reason, "{given:?}");
        let user = ReasonFacts {
            mode: Some(Where::User),
            ..given
        };
        assert_eq!(user.reason(), Reason::Other, "{user:?}");
    }
}

/// A lock that is taken after each IPI: the wait continues long after all receivers have run.
#[test]
fn a_wait_that_outlasts_its_receivers_is_for_no_answers() {
    for (open, answered, all, reason) in [
        (6, 4, 10, Reason::FunctionCall),
        (5, 5, 10, Reason::Spinlock),
        (1, 9, 10, Reason::Spinlock),
        (4, 2, 10, Reason::FunctionCall),
        (3, 2, 10, Reason::Spinlock),
        (6, 5, 10, Reason::Spinlock),
        (u64::MAX, 1, u64::MAX, Reason::Spinlock),
    ] {
        let given = ReasonFacts {
            location_answered: answered,
            ..facts(IpiEvidence::Open, Vector::NotKnown, open, all)
        };
        assert_eq!(given.reason(), reason, "{given:?}");
    }
}

#[test]
fn which_ipis_may_be_waited_for() {
    for ipi in IPIS {
        for vector in VECTORS {
            let sent = matches!(ipi, IpiEvidence::Answered | IpiEvidence::Open);
            let asks = matches!(vector, Vector::NotKnown | Vector::FunctionCall);
            assert_eq!(may_wait_for_answers(ipi, vector), sent && asks);
        }
    }
}

#[test]
fn functions_of_table_3_and_of_today() {
    let table = [
        ("native_queued_spin_lock_slowpath", Symbol::Spinlock),
        ("native_queued_spin_lock_slowpath.part.0", Symbol::Spinlock),
        ("smp_call_function_many", Symbol::FunctionCall),
        ("smp_call_function_many_cond", Symbol::FunctionCall),
        ("smp_call_function_many_condition", Symbol::Other),
        ("smp_call_function", Symbol::Other),
        ("delay_tsc", Symbol::Delay),
        ("try_to_wake_up", Symbol::Spinlock),
        ("", Symbol::Other),
        ("delay\0tsc", Symbol::Other),
    ];
    for (function, symbol) in table {
        assert_eq!(symbol_of(function), symbol, "{function}");
    }
}

#[test]
fn vectors_of_linux() {
    assert_eq!(linux_vector(0xfd), Vector::Reschedule);
    assert_eq!(linux_vector(0xfc), Vector::FunctionCall);
    assert_eq!(linux_vector(0xfb), Vector::FunctionCall);
    assert_eq!(linux_vector(0xec), Vector::Other);
}
