// SPDX-License-Identifier: MIT OR Apache-2.0
//! What guests that cooperate say of their vCPUs (abi/hint.h): claims, believed for the guest that makes them.

use unspin_abi as abi;

/// What a hint page said at a switch out or a pause-loop exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// It holds a lock.
    pub holding: bool,
    /// `enum unspin_hint_waiting`.
    pub waiting: u8,
    /// The guest's clock when it asked for the lock or for answers last: tells one wait from the next.
    pub asked_tsc: u64,
}

impl Hint {
    /// Whether it spins.
    pub fn waits(&self) -> bool {
        u32::from(self.waiting) != abi::UNSPIN_HINT_NOT_WAITING
    }

    /// Whether it spins for answers.
    pub fn waits_for_answers(&self) -> bool {
        u32::from(self.waiting) == abi::UNSPIN_HINT_WAITS_FOR_ANSWERS
    }
}

/// The hint given with the event at exactly `time_ns`; the page is read in the same program, a moment later at most.
pub fn at(hints: Option<&Vec<(u64, [u64; 3])>>, time_ns: u64) -> Option<Hint> {
    let hints = hints?;
    let last = hints.partition_point(|&(at_ns, _)| at_ns < time_ns);
    let &(at_ns, [flags, _, asked_tsc]) = hints.get(last)?;
    (at_ns == time_ns).then_some(Hint {
        holding: flags >> abi::UNSPIN_HINT_HOLDING_SHIFT & 0xff != 0,
        waiting: (flags >> abi::UNSPIN_HINT_WAITING_SHIFT) as u8,
        asked_tsc,
    })
}
