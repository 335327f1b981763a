// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waits of vCPUs as a host can rebuild them: from pause-loop exits, from where vCPUs were when they left their CPUs, and
//! from the interrupts they sent.
//!
//! A pause-loop exit says that the vCPU spun for one window. Before the first exit of a wait lies that window; after the last
//! one a remainder that nobody sees, shorter than a window. A vCPU that leaves its CPU inside a known spin loop spins; one
//! that leaves it elsewhere, or sends an interrupt, does not.

/// A wait at one place in the guest's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWait {
    /// Who waited.
    pub vcpu: u16,
    /// The spin loop; `None` where the host cannot see instruction pointers.
    pub location: Option<u64>,
    /// When it began, as far as that is known: one window before the first exit, or when the interrupt was sent.
    pub begin_ns: u64,
    /// When it ended, as far as that is known.
    pub end_ns: u64,
    /// It had not ended before.
    pub end_not_before_ns: u64,
    /// It had ended by then.
    pub end_not_after_ns: u64,
    /// It was seen to do something else afterwards; otherwise it only took too long for a wait that went on.
    pub seen_over: bool,
    /// Its last pause-loop exit: until then, a whole window had passed in the guest without what it waited for. 0: none.
    pub seen_ns: u64,
    /// The guest's name for it: when it asked, by its own clock, and whether for answers; where it gives pv pages.
    pub has_pv_page: Option<(u64, bool)>,
    /// Pause-loop exits.
    pub exits: u32,
    /// How it went on for the last time, see [`RESUMPTIONS`].
    pub resumption: usize,
    /// When IPIs reached it since.
    pub arrivals_ns: Vec<u64>,
    /// The interrupts that it sent just before.
    pub sent: Option<Sent>,
}

/// Interrupts that a vCPU sent in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When the first went out.
    pub first_ns: u64,
    /// And the last.
    pub last_ns: u64,
    /// Their vector.
    pub vector: u8,
    /// To whom.
    pub receivers: Vec<u16>,
    /// The vCPU was seen spinning hardly longer than a window after that, as far as it had a CPU.
    pub close: bool,
}

/// Ways in which a wait goes on in the guest: after time off the CPU or not, and with an IPI to be taken first or not.
pub const RESUMPTIONS: usize = 4;

/// Its place among them.
pub fn resumption(resumed: bool, pending: bool) -> usize {
    usize::from(resumed) * 2 + usize::from(pending)
}
