// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of a guest's claims no honest guest makes: `policy/classify/guest_audit.h`.

use crate::raw;

/// What the guest of one VM claimed and asked for since the scheduler was attached: `abi/bpf/scheduler.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestAudit {
    /// Ends of slices at which its page was read.
    pub boundaries: u64,
    /// Of them with a critical section claimed.
    pub claimed: u64,
    /// Loans and grants that it was told of.
    pub borrowed: u64,
    /// Of them ended by the clock.
    pub overrun: u64,
    /// Its page could not be read, or had no magic.
    pub page_failures: u64,
    /// Registrations of what is no page of its memory.
    pub bad_addresses: u64,
    /// It gave back without owing anything.
    pub idle_calls: u64,
    /// Where rules of candidates are loaded: interrupts that its vCPUs sent one another, each once for all its receivers.
    pub sent: u64,
    /// Likewise receivers that were off their CPU and had not answered the last one yet.
    pub unanswered: u64,
    /// Likewise the CPU time of its vCPUs.
    pub ran_ns: u64,
}

impl GuestAudit {
    /// What there is to say of it, each with its numbers; nothing of an honest guest.
    pub fn says(&self) -> Vec<String> {
        let counts = raw::unspin_guest_audit {
            boundaries: self.boundaries,
            claimed: self.claimed,
            borrowed: self.borrowed,
            overrun: self.overrun,
            page_failures: self.page_failures,
            bad_addresses: self.bad_addresses,
            idle_calls: self.idle_calls,
            sent: self.sent,
            unanswered: self.unanswered,
            ran_ns: self.ran_ns,
        };
        // SAFETY: reads a valid struct for the length of the call.
        let said = unsafe { raw::unspin_audit_guest(&counts) };
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
