// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds claims of a guest that no honest guest makes: `policy/classify/guest_audit.h`.

use crate::raw;

/// What the guest of one VM has claimed and requested since the scheduler was attached: `abi/bpf/scheduler.h`.
pub use raw::unspin_guest_audit as GuestAudit;

impl GuestAudit {
    /// The findings, each with its numbers; empty for an honest guest.
    pub fn says(&self) -> Vec<String> {
        // SAFETY: reads a valid struct for the length of the call.
        let said = unsafe { raw::unspin_audit_guest(self) };
        let each = [
            (
                raw::UNSPIN_AUDIT_CLAIMS,
                format!(
                    "claims a critical section at {} of {} slice ends, and came out of {} of {} loans and grants by the clock alone",
                    self.claimed, self.boundaries, self.overrun, self.borrowed
                ),
            ),
            (
                raw::UNSPIN_AUDIT_PAGE,
                format!(
                    "has a pv page that could not be read, or has no magic, {} times",
                    self.page_failures
                ),
            ),
            (
                raw::UNSPIN_AUDIT_ADDRESSES,
                format!(
                    "registered what is no page of its memory {} times",
                    self.bad_addresses
                ),
            ),
            (
                raw::UNSPIN_AUDIT_CALLS,
                format!(
                    "gave back {} times what it did not have, and had something {} times",
                    self.idle_calls, self.borrowed
                ),
            ),
            (
                raw::UNSPIN_AUDIT_FLOODS,
                format!(
                    "sent its own vCPUs {} interrupts, and one that had not answered the last {} times, every {} ns of its CPU time",
                    self.sent,
                    self.unanswered,
                    self.ran_ns / self.unanswered.max(1)
                ),
            ),
        ];
        let said = each.into_iter().filter(|(bit, _)| said & bit != 0);
        said.map(|(_, text)| text).collect()
    }
}
