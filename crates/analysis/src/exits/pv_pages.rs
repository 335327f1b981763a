// SPDX-License-Identifier: MIT OR Apache-2.0
//! What guests that cooperate say of their vCPUs (abi/guest/pv_page.h): claims, believed for the guest that makes them.

use unspin_abi as abi;

/// What a pv page said at a switch out or a pause-loop exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PvPage {
    /// It holds a lock.
    pub holding: bool,
    /// `enum unspin_pv_page_waiting`.
    pub waiting: u8,
    /// The guest's clock when it asked for the lock or for answers last: tells one wait from the next.
    pub asked_tsc: u64,
}

impl PvPage {
    /// Whether it spins.
    pub fn waits(&self) -> bool {
        u32::from(self.waiting) != abi::UNSPIN_PV_PAGE_NOT_WAITING
    }

    /// Whether it spins for answers.
    pub fn waits_for_answers(&self) -> bool {
        u32::from(self.waiting) == abi::UNSPIN_PV_PAGE_WAITS_FOR_ANSWERS
    }
}

/// The pv page given with the event at exactly `time_ns`; the page is read in the same program, a moment later at most.
pub fn at(pv_page: Option<&Vec<(u64, [u64; 3])>>, time_ns: u64) -> Option<PvPage> {
    let pv_page = pv_page?;
    let last = pv_page.partition_point(|&(at_ns, _)| at_ns < time_ns);
    let &(at_ns, [flags, _, asked_tsc]) = pv_page.get(last)?;
    (at_ns == time_ns).then_some(PvPage {
        holding: flags >> abi::UNSPIN_PV_PAGE_HOLDING_SHIFT & 0xff != 0,
        waiting: (flags >> abi::UNSPIN_PV_PAGE_WAITING_SHIFT) as u8,
        asked_tsc,
    })
}
