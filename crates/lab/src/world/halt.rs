// SPDX-License-Identifier: MIT OR Apache-2.0
//! HLT: a vCPU polls for a while, as long as that has paid lately, and then its thread sleeps (`kvm_vcpu_halt()`,
//! virt/kvm/kvm_main.c, Linux 7.2).

use super::{World, vcpu::Then};
use crate::{
    ids::Cpu,
    trace_event::{Observer, TraceEvent},
};

/// `halt_poll_ns_grow_start`, and the factors `halt_poll_ns_grow` and `halt_poll_ns_shrink` (2 since 6.11), docs/facts.md#guest.
const GROW_START_NS: u32 = 10_000;
const GROW: u32 = 2;
const SHRINK: u32 = 2;

/// The polling time after a halt that lasted so long, of at most `most_ns`.
fn next_poll_ns(poll_ns: u32, block_ns: u64, most_ns: u32) -> u32 {
    if block_ns <= u64::from(poll_ns) {
        poll_ns
    } else if poll_ns != 0 && block_ns > u64::from(most_ns) {
        let shrunk_ns = poll_ns / SHRINK;
        if shrunk_ns < GROW_START_NS {
            0
        } else {
            shrunk_ns
        }
    } else if poll_ns < most_ns && block_ns < u64::from(most_ns) {
        (poll_ns.saturating_mul(GROW))
            .max(GROW_START_NS)
            .min(most_ns)
    } else {
        poll_ns
    }
}

impl<O: Observer> World<O> {
    pub(super) fn halt(&mut self, cpu: Cpu, vcpu: usize) {
        let known = &mut self.vcpus[vcpu];
        known.halted_since_ns = Some(self.now_ns);
        if !known.pending.is_empty() {
            self.halt_over(vcpu);
            self.enter_soon(vcpu);
        } else if known.halt_poll_ns != 0 {
            known.then = Then::PollOver;
            known.host_left_ns = known.halt_poll_ns.into();
        } else {
            self.sleep(cpu, vcpu);
        }
    }

    pub(super) fn poll_over(&mut self, cpu: Cpu, vcpu: usize) {
        if self.vcpus[vcpu].pending.is_empty() {
            self.sleep(cpu, vcpu);
        } else {
            self.halt_over(vcpu);
            self.enter_soon(vcpu);
        }
    }

    fn sleep(&mut self, cpu: Cpu, vcpu: usize) {
        self.vcpus[vcpu].statistics.halts += 1;
        self.enter_soon(vcpu);
        self.tell(cpu, TraceEvent::Halted);
        self.block(cpu);
    }

    /// The halt is over, by polling or after a sleep: the next polls longer or shorter.
    pub(super) fn halt_over(&mut self, vcpu: usize) {
        let (now_ns, most_ns) = (self.now_ns, self.host.halt_poll_ns);
        let known = &mut self.vcpus[vcpu];
        if let Some(since_ns) = known.halted_since_ns.take() {
            known.halt_poll_ns = next_poll_ns(known.halt_poll_ns, now_ns - since_ns, most_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_grows_while_it_would_have_paid_and_shrinks_after_long_halts() {
        let most_ns = 200_000;
        assert_eq!(next_poll_ns(0, 50_000, most_ns), GROW_START_NS);
        assert_eq!(next_poll_ns(10_000, 50_000, most_ns), 20_000);
        assert_eq!(next_poll_ns(160_000, 190_000, most_ns), most_ns);
        assert_eq!(next_poll_ns(40_000, 30_000, most_ns), 40_000);
        assert_eq!(next_poll_ns(40_000, 5_000_000, most_ns), 20_000);
        assert_eq!(next_poll_ns(10_000, 5_000_000, most_ns), 0);
        assert_eq!(next_poll_ns(0, 5_000_000, most_ns), 0);
        assert_eq!(next_poll_ns(0, 5_000, 0), 0, "switched off");
    }
}
