// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts for tests, which each test changes.

use unspin_policy::steering::{Fact, Facts, OrderFacts, UNSPIN_AGE_UNKNOWN, VcpuFacts};

/// A fact that is unknown.
pub const UNKNOWN: Fact = Fact {
    value: 0,
    age_ns: UNSPIN_AGE_UNKNOWN,
};

/// A fact that is 5 us old.
pub fn seen(value: u32) -> Fact {
    Fact {
        value,
        age_ns: 5_000,
    }
}

/// A vCPU of which only is known that it is descheduled, or runs.
pub fn vcpu(descheduled: bool) -> VcpuFacts {
    VcpuFacts {
        critical: UNKNOWN,
        mode: UNKNOWN,
        descheduled: seen(descheduled.into()),
        yielded: UNKNOWN,
        spun: seen(0),
        borrows: seen(0),
        near: UNKNOWN,
        sections: UNKNOWN,
        awaited: UNKNOWN,
        awaits: UNKNOWN,
    }
}

/// A vCPU that runs, and a descheduled candidate.
pub fn facts() -> Facts {
    Facts {
        self_: vcpu(false),
        candidate: vcpu(true),
        slice_ns: 1_400_000,
        slice_left_ns: 700_000,
        recent_ns: 1_000_000,
        threshold_ns: 2_000_000,
        order: OrderFacts::UNKNOWN,
    }
}
