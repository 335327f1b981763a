// SPDX-License-Identifier: MIT OR Apache-2.0
//! The costs of operations. Each default has its source; `unspin lab calibrate` measures those of a machine.

use serde::{Deserialize, Serialize};

use crate::topology::Distance;

/// Costs of a host, its hypervisor and its caches. Nanoseconds of CPU time unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// One spin of the work loop (`locks/parts/work.h`), picoseconds: one cycle of a 2.5 GHz core.
    pub work_loop_ps: u32,
    /// One spin of a waiting loop without PAUSE, picoseconds: a load that hits, a comparison and a branch, some 5 cycles.
    pub wait_spin_ps: u32,
    /// PAUSE, picoseconds: 65 cycles, as of AMD's Zen 2 and later as reported; no vendor's source was found (docs/facts.md#numbers).
    /// Intel's takes 140 cycles since Skylake (its optimisation manual): at the TSC's rate that is more than `ple_gap`, 128,
    /// and such a loop never exits.
    pub pause_ps: u32,
    /// Ticks of the TSC per microsecond: 2.5 GHz.
    pub tsc_mhz: u32,
    /// From guest to host, until KVM knows the reason: half of 2,528 cycles for a whole KVM_RUN
    /// (docs/facts.md#numbers).
    pub exit_ns: u32,
    /// From host to guest: the other half.
    pub entry_ns: u32,
    /// `kvm_vcpu_on_spin()` without its candidates: a handled pause-loop exit takes 260 ns (docs/facts.md#numbers), exit and entry
    /// included on that machine; what its loop adds is not published. A guess.
    pub on_spin_ns: u32,
    /// Each candidate considered there: two cache misses. A guess.
    pub candidate_ns: u32,
    /// `yield_to()`: two run queues' locks. A guess.
    pub yield_to_ns: u32,
    /// Switch from one task to another: some 3,000 cycles (FlexGuard, docs/facts.md#numbers).
    pub switch_ns: u32,
    /// The host's tick, interrupt included. A guess: 5,000 cycles.
    pub tick_ns: u32,
    /// A timer that polls a borrower, interrupt included. A guess: 2,500 cycles; 70 to 100 us in the emulated testbed.
    pub poll_ns: u32,
    /// From sending an interrupt to another pCPU until it is handled there: a unicast IPI in guests takes 2.5 us with its two
    /// exits (docs/facts.md#numbers), of which some 500 ns are its delivery.
    pub ipi_ns: u32,
    /// Sending an interrupt from a guest, without exit and entry: KVM's emulation of the ICR. A guess.
    pub ipi_send_ns: u32,
    /// The work of a hypercall, without exit and entry. A guess.
    pub hypercall_ns: u32,
    /// The work of HLT until the vCPU polls or sleeps, without the exit. A guess.
    pub halt_ns: u32,
    /// Waking a sleeping vCPU: the waker's side, `try_to_wake_up()`. A guess.
    pub wakeup_ns: u32,
    /// An interrupt handler of the guest, its entry and EOI included. A guess: 1,500 cycles.
    pub handler_ns: u32,
    /// Switch from one guest task to another: half of the host's, since there is no exit and the address space often
    /// stays. A guess.
    pub guest_switch_ns: u32,
    /// The host's work at a page fault before it waits, without the exit. A guess.
    pub page_fault_ns: u32,
    /// An access to a cache line that this pCPU has: L1, 4 to 5 cycles.
    pub line_hit_ns: u32,
    /// Transfer of a cache line, by distance: within the core, within a last-level cache, a socket, between sockets.
    /// Typical of servers of the 2020s: 10, 45, 75 and 130 ns.
    pub line_core_ns: u32,
    /// See `line_core_ns`.
    pub line_cache_ns: u32,
    /// See `line_core_ns`.
    pub line_socket_ns: u32,
    /// See `line_core_ns`.
    pub line_machine_ns: u32,
    /// Additional time for each further waiter on the line to get its copy after a change: copies are sent one by one.
    pub line_waiter_ns: u32,
    /// Speed of a hardware thread while its sibling is busy, in 1024ths of its speed alone: 1.25 together.
    pub smt_speed: u32,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            work_loop_ps: 400,
            wait_spin_ps: 2_000,
            pause_ps: 26_000,
            tsc_mhz: 2_500,
            exit_ns: 500,
            entry_ns: 500,
            on_spin_ns: 200,
            candidate_ns: 20,
            yield_to_ns: 300,
            switch_ns: 1_200,
            tick_ns: 2_000,
            poll_ns: 1_000,
            ipi_ns: 500,
            ipi_send_ns: 300,
            hypercall_ns: 100,
            halt_ns: 300,
            wakeup_ns: 500,
            handler_ns: 600,
            guest_switch_ns: 600,
            page_fault_ns: 1_000,
            line_hit_ns: 2,
            line_core_ns: 10,
            line_cache_ns: 45,
            line_socket_ns: 75,
            line_machine_ns: 130,
            line_waiter_ns: 5,
            smt_speed: 640,
        }
    }
}

impl Costs {
    /// Transfer of a line over this distance.
    pub const fn line_ns(&self, distance: Distance) -> u32 {
        match distance {
            Distance::Itself => self.line_hit_ns,
            Distance::Core => self.line_core_ns,
            Distance::Cache => self.line_cache_ns,
            Distance::Socket => self.line_socket_ns,
            Distance::Machine => self.line_machine_ns,
        }
    }

    /// The time of this many loops of work, ns, rounded up.
    pub const fn work_ns(&self, loops: u32) -> u64 {
        (loops as u64 * self.work_loop_ps as u64).div_ceil(1_000)
    }
}
