// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rulings 33 and 34: what decides the reason of an exit, and what does not.

use unspin_policy::{
    IpiEvidence, Reason, ReasonFacts, Symbol, Vector, Where, linux_vector, symbol_of,
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

fn facts(ipi: IpiEvidence, vector: Vector, with: u64, all: u64) -> ReasonFacts {
    ReasonFacts {
        symbol: None,
        mode: Some(Where::Kernel),
        ipi,
        vector,
        location_with_ipi: with,
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
        (NotKnown, Vector::FunctionCall, 10, 10, Reason::Unknown),
        (None, Vector::NotKnown, 0, 10, Reason::Spinlock),
        // The vector says that answers are waited for; once all receivers have run, the location must say so too.
        (Open, Vector::FunctionCall, 1, 10, Reason::FunctionCall),
        (Answered, Vector::FunctionCall, 1, 10, Reason::Spinlock),
        (Answered, Vector::FunctionCall, 10, 10, Reason::FunctionCall),
        // A reschedule is waited for by nobody, even at a location that always comes with one.
        (Open, Vector::Reschedule, 10, 10, Reason::Spinlock),
        // An IPI alone proves nothing: the location decides.
        (Open, Vector::NotKnown, 10, 10, Reason::FunctionCall),
        (Open, Vector::NotKnown, 9, 10, Reason::Spinlock),
        (Open, Vector::NotKnown, 980, 1000, Reason::FunctionCall),
        (Open, Vector::NotKnown, 979, 1000, Reason::Spinlock),
        (Answered, Vector::NotKnown, 10, 10, Reason::FunctionCall),
        (Open, Vector::NotKnown, 0, 0, Reason::Unknown),
        (Open, Vector::NotKnown, 11, 10, Reason::Unknown),
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
