// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/slice.h`.

use crate::{raw, steering::Decision};

/// Whose time a task runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BorrowKind {
    /// Its own slice, or the rest of another task's slice for good.
    Nothing = raw::UNSPIN_BORROWS_NOTHING,
    /// Another task's slice, up to a budget; then the lender continues.
    Loan = raw::UNSPIN_BORROWS_LOAN,
    /// Time after the end of its slice, up to a budget.
    Grant = raw::UNSPIN_BORROWS_GRANT,
}

impl BorrowKind {
    /// Whether policies are called for a grant to a task whose time of this kind has ended.
    pub fn may_be_granted(self) -> bool {
        // SAFETY: a function of numbers alone.
        unsafe { raw::unspin_may_be_granted(self as u32) }
    }

    /// What becomes of a decision about a task that spins on time of this kind.
    pub fn within_slice(self, decision: Decision) -> Decision {
        let raw = decision.to_raw();
        // SAFETY: as above.
        Decision::from_raw(unsafe { raw::unspin_within_slice(self as u32, raw) })
    }
}

/// What is left of a slice or budget that ends at `end_ns`, ns; 0: it has ended. The two times are less than 2^63
/// apart.
pub fn slice_left_ns(end_ns: u64, now_ns: u64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_slice_left(end_ns, now_ns) }
}

/// For how long a task runs in another task's slice of which `left_ns` is left, ns; 1: until the next tick.
pub fn slice_length_ns(left_ns: u64, kind: BorrowKind, budget_ns: u32) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_slice_length(left_ns, kind as u32, budget_ns) }
}

/// The task that pays when `own` passes on the slice in which it runs. `payer`: the task that has paid for that slice
/// so far, if not `own`. Tasks are numbered from 0.
pub fn slice_payer(payer: Option<u32>, own: u32) -> u32 {
    // SAFETY: as above.
    unsafe { raw::unspin_slice_payer(thread(payer), thread(Some(own))) - 1 }
}

/// The task that continues after the one to which `own` passes the slice. `lends`: on loan, not for good; `lender`: the
/// task that was to continue after `own`. Tasks are numbered from 0.
pub fn slice_lender(lender: Option<u32>, own: u32, lends: bool) -> Option<u32> {
    // SAFETY: as above.
    unsafe { raw::unspin_slice_lender(thread(lender), thread(Some(own)), lends) }.checked_sub(1)
}

/// Whether the lender continues its slice, of which `left_ns` is left, after the loan.
pub fn slice_returns(left_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_slice_returns(left_ns) }
}

/// In C tasks are numbered from 1, and 0 means none.
fn thread(task: Option<u32>) -> u32 {
    task.map_or(0, |task| task + 1)
}
