// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which hostile guests run beside which policies, and what is said of them.

/// Guests that do something wrong.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    /// What is on beside it.
    pub policies: &'static str,
    /// The counter that shows that it did, more than 100 times; empty: what is said of it does.
    pub shows: &'static str,
    /// What is said of it, in part; empty: nothing, it wastes its own time only.
    pub named: &'static str,
}

pub const LOANS: &str = "loan,loan-cpl,kernel-exit,helping,directed-yield";
const GRANTS: &str = "ecs,ecs-give-back,loan,helping,debooster-ancestor";
/// Our scheduler chooses at every pause-loop exit, and all that may follow from it is on.
pub const ALL: &str = "loan,loan-cpl,kernel-exit,helping,ecs-give-back,debooster-ancestor,candidates=strict,spin-samples";

const FLOODS: Kind = Kind {
    name: "floods",
    policies: ALL,
    shows: "chosen",
    named: "had not answered the last",
};
const UNMAPPED: Kind = Kind {
    name: "unmapped",
    policies: GRANTS,
    shows: "pv_page_failures",
    named: "could not be read",
};
const NEIGHBOUR: Kind = Kind {
    name: "neighbour",
    policies: LOANS,
    shows: "",
    named: "no page of its memory",
};
const CRITICAL: Kind = Kind {
    name: "critical",
    policies: LOANS,
    shows: "lent",
    // It spins: most of its loans end by its next yield, not by the clock, and the rule does not see it.
    named: "",
};
const EVERYTHING: Kind = Kind {
    name: "everything",
    policies: ALL,
    shows: "directed",
    named: "no page of its memory",
};

/// In `make test`; the others are in the long form as well.
pub static SHORT: [Kind; 5] = [
    Kind {
        name: "hypercalls",
        policies: LOANS,
        shows: "pv_page_failures",
        named: "no page of its memory",
    },
    // It is preempted inside our programs more often than elsewhere.
    Kind {
        name: "counts",
        policies: LOANS,
        shows: "counts",
        named: "no page of its memory",
    },
    Kind {
        name: "lends",
        policies: "loan-cpl,kernel-exit",
        shows: "lent",
        named: "",
    },
    CRITICAL,
    FLOODS,
];

/// Addresses that are not theirs, or are no longer.
pub static ADDRESSES: [Kind; 2] = [UNMAPPED, NEIGHBOUR];

/// Two lie in every way at once, beside all of ours and beside the paper's extra schedules (eCS). The last is granted time at a
/// tick, and spins in it.
pub static LONG_ONLY: [Kind; 10] = [
    Kind {
        name: "help",
        policies: LOANS,
        shows: "helped",
        named: "",
    },
    Kind {
        name: "yields",
        policies: LOANS,
        shows: "directed",
        named: "",
    },
    Kind {
        policies: GRANTS,
        ..CRITICAL
    },
    Kind {
        name: "ballooned",
        policies: GRANTS,
        shows: "pv_page_failures",
        named: "has no magic",
    },
    Kind {
        policies: "candidates=strict",
        ..FLOODS
    },
    Kind {
        policies: "ecs,debooster,usermode",
        ..FLOODS
    },
    Kind {
        policies: "directed-yield,candidates=kvm-5.3",
        ..FLOODS
    },
    EVERYTHING,
    Kind {
        policies: "ecs",
        ..EVERYTHING
    },
    Kind {
        policies: "directed-yield,kernel-exit",
        shows: "granted",
        ..CRITICAL
    },
];
