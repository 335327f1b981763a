// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a vCPU does, in layers: the host's work for it comes first, then an interrupt handler, then the guest task.

use std::collections::VecDeque;

use unspin_policy::{
    Ecs, PauseHardware, PauseLoop, Spin as PauseSpin, SpinSamples, steering::Memory,
};

use crate::{
    engine::NEVER_NS,
    guest::{Port, Watcher, Word},
    ids::{Cpu, Task},
    random::Random,
    trace_event::Vector,
};

/// What follows the host's work for a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The guest is entered.
    Enter,
    /// `kvm_vcpu_on_spin()` chooses a candidate.
    OnSpin,
    /// HLT: the vCPU halts unless an interrupt is pending.
    Halt,
    /// Halt polling has ended without an interrupt.
    PollOver,
    /// The IPI that the guest requested by a write to its interrupt controller.
    Send(Sending),
    /// The hypercall by which a borrowed pCPU is given back.
    GiveBack,
    /// The hypercall for help.
    Help,
    /// The hypercall for help that names a vCPU of the world (`kvm_sched_yield()`).
    HelpNamed(u32),
    /// The host fetches a page; true: the guest is notified meanwhile.
    Fault(bool),
}

/// The receivers of an inter-processor interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// All others, which must answer.
    Shootdown,
    /// The next vCPU, for which there is a token.
    Token,
    /// That vCPU of the VM, by hypercall: its halt ends (`kvm_pv_kick_cpu_op()`).
    Kick(u32),
    /// That vCPU of the VM: one of its tasks must read its word again.
    Wake(u32),
}

/// What the guest task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Work for this long.
    Work { left_ns: u64 },
    /// An access to a word, which takes effect at its end.
    Access { left_ns: u64, access: Access },
    /// A wait for a word to change.
    Spin(Spin),
    /// The answer to its last request is available.
    Answer(u32),
    /// HLT, or another guest task runs until an interrupt.
    Halted,
    /// It waits for a page that the host fetches.
    Faulted,
    /// Its iterations are done: it only handles interrupts.
    Done,
}

/// A guest task that is not on its vCPU.
pub(super) struct GuestTask {
    pub port: Port,
    pub base: Base,
    pub user: bool,
    pub debt_ns: u64,
}

impl GuestTask {
    /// Whether it is runnable.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.base, Base::Work { .. } | Base::Answer(_))
    }
}

/// An access to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub kind: u32,
    pub word: Word,
    pub first: u32,
    pub second: u32,
}

/// A wait: `platform_wait_while()` or `platform_wait_until()`. The condition is in the watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spin {
    pub watcher: Watcher,
    /// Time on a pCPU after which the spins are used up; `NEVER_NS`: no bound.
    pub limit_ns: u64,
    /// Time spent on a pCPU so far.
    pub spent_ns: u64,
    /// Time until it reads a change; `NEVER_NS`: none is under way.
    pub seen_in_ns: u64,
    /// Time on a pCPU after which it next calls for help; `NEVER_NS`: never.
    pub help_at_ns: u64,
}

/// Pending interrupts, one bit each; taken in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending(u8);

const VECTORS: [Vector; 3] = [Vector::Shootdown, Vector::Reschedule, Vector::Tick];

impl Pending {
    pub fn add(&mut self, vector: Vector) {
        let place = VECTORS.iter().position(|known| *known == vector);
        self.0 |= 1 << place.unwrap_or(0);
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether one is among them for which its sender waits.
    pub const fn is_awaited(self) -> bool {
        self.0 & 1 != 0
    }

    pub fn take(&mut self) -> Option<Vector> {
        let place = self.0.trailing_zeros() as usize;
        let vector = VECTORS.get(place)?;
        self.0 &= self.0 - 1;
        Some(*vector)
    }
}

/// How the hardware counts a vCPU's PAUSEs (`policy/model/pause_loop.h`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    pub hardware: PauseHardware,
    pub memory: PauseLoop,
    /// Time since the last PAUSE, in the loop.
    pub phase_cycles: u64,
    /// The current stretch of spinning, and its length so far.
    pub stretch: Option<PauseSpin>,
    pub stretch_ns: u64,
    /// Time until it exits; `NEVER_NS`: it does not.
    pub exit_in_ns: u64,
}

impl Pauses {
    pub fn new(hardware: PauseHardware) -> Pauses {
        Pauses {
            hardware,
            memory: PauseLoop::default(),
            phase_cycles: 0,
            stretch: None,
            stretch_ns: 0,
            exit_in_ns: NEVER_NS,
        }
    }
}

/// What `kvm_vcpu_on_spin()` and its baselines store of a vCPU (`policy/steering/candidate.h`). Masks have one bit
/// for each vCPU of the VM.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PendingIpi {
    /// It left its pCPU in a pause-loop exit.
    pub spins: bool,
    /// It was passed over as a lock waiter: `dy_eligible`.
    pub eligible: bool,
    /// It was woken, and has not run since.
    pub woken: bool,
    /// The vCPUs that sent it an IPI while it was off its pCPU, since it last ran; the IPI's purpose and time.
    pub sent_by: u64,
    pub vector: Option<Vector>,
    pub sent_ns: u64,
    /// The vCPUs that passed it over while it was halted, since it last ran.
    pub passed_by: u64,
}

/// A vCPU's counts; times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VcpuStatistics {
    /// Iterations done.
    pub operations: u64,
    /// Locks taken.
    pub acquisitions: u64,
    /// Time from requesting locks until holding them.
    pub lock_wait_ns: u64,
    /// The longest of these times.
    pub longest_wait_ns: u64,
    /// Time in which it held locks, on a pCPU or not.
    pub hold_ns: u64,
    /// Time on a pCPU in waiting loops.
    pub spin_ns: u64,
    /// PAUSEs executed where pause-loop exits are possible.
    pub pauses: u64,
    /// Pause-loop exits.
    pub pause_exits: u64,
    /// Calls of `yield_to()` that were done, and calls that were not.
    pub yields: u64,
    /// See `yields`.
    pub yields_refused: u64,
    /// Loans that it received, grants at ends of slices, and how often it gave a pCPU back early.
    pub loans: u64,
    /// See `loans`.
    pub grants: u64,
    /// See `loans`.
    pub given_back: u64,
    /// How often a vCPU was run because this one called for help.
    pub helped: u64,
    /// Slice boundaries that it reached while waiting for a lock or holding one (ruling 22).
    pub boundaries_critical: u64,
    /// How often it was descheduled while runnable.
    pub preemptions: u64,
    /// Of these, how often while it held a lock.
    pub preemptions_holding: u64,
    /// Of these, how often while it waited for one.
    pub preemptions_waiting: u64,
    /// Shootdowns that it sent, and requests that it answered.
    pub shootdowns: u64,
    /// See `shootdowns`.
    pub shootdowns_answered: u64,
    /// Tokens that it passed on.
    pub wakeups: u64,
    /// Kicks of other vCPUs.
    pub kicks: u64,
    /// How often its thread went to sleep.
    pub halts: u64,
    /// Pages that the host had to fetch.
    pub page_faults: u64,
    /// Switches between guest tasks.
    pub guest_switches: u64,
    /// Guest ticks handled.
    pub ticks: u64,
    /// Time of the host's work on its account: exits, entries, switches.
    pub host_ns: u64,
    /// The part of it for pause-loop exits.
    pub spin_host_ns: u64,
    /// Waits that the guest ended at its threshold, the sum of these thresholds, and the host's time to
    /// handle them.
    pub waits_ended: u64,
    /// See `waits_ended`.
    pub waited_spins: u64,
    /// See `waits_ended`.
    pub wait_host_ns: u64,
}

/// What unspin's scheduler stores of a vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steered {
    /// When it was last outside its guest.
    pub exit_ns: u64,
    pub yielded_ns: Option<u64>,
    /// Pause-loop exits since its iteration began.
    pub spun: u32,
    pub borrowed_since_ns: Option<u64>,
    pub ran_on: Option<Cpu>,
    /// Whether it was entered on borrowed time.
    pub entered_borrowing: bool,
}

/// A vCPU.
pub(super) struct Vcpu {
    pub port: Port,
    pub vm: u32,
    /// Generator for its random events.
    pub random: Random,
    /// Its number in its VM.
    pub number: u32,
    pub task: Task,
    /// Whether it is inside its guest: then the guest's code runs when the vCPU does.
    pub inside: bool,
    pub host_left_ns: u64,
    pub then: Then,
    pub handler: Option<(Vector, u64)>,
    pub base: Base,
    /// Time of accesses that took effect at once, ns: added to what comes next.
    pub debt_ns: u64,
    pub user: bool,
    pub pending: Pending,
    /// The vCPUs that wait for this vCPU's answer, one bit each.
    pub senders: u64,
    pub tokens: u32,
    /// Whether it was kicked since it last checked (`pv_unhalted`).
    pub kicked: bool,
    pub pauses: Pauses,
    pub pending_ipi: PendingIpi,
    pub samples: SpinSamples,
    /// It lost its pCPU while it waited.
    pub waited: bool,
    /// Guest tasks that are not on the vCPU, in the order in which they run.
    pub others: VecDeque<GuestTask>,
    /// When the page arrives of which the guest was notified, and when the thread wakes that waits for a page;
    /// `NEVER_NS`: none.
    pub page_ns: u64,
    pub sleeps_until_ns: u64,
    /// When the guest's timer is due; `NEVER_NS`: it has none.
    pub timer_ns: u64,
    /// The lock it waits for, and since when.
    pub asks: Option<(u32, u64)>,
    /// The lock it holds, and since when.
    pub holds: Option<(u32, u64)>,
    /// `critical` in its pv page: locks that it waits for and holds.
    pub critical: u32,
    /// `borrowed` in its pv page: it runs on borrowed time.
    pub borrowed: bool,
    pub steered: Steered,
    pub memory: Memory,
    /// Its extra schedules, if the host grants them.
    pub ecs: Option<Ecs>,
    /// The halt polling time in force (`kvm_vcpu_halt()`).
    pub halt_poll_ns: u32,
    pub halted_since_ns: Option<u64>,
    /// `spin_count` in its pv page; 0: none.
    pub notified_spin_count: u32,
    /// It left its guest at the end of a wait that counts, and has neither entered it nor left its pCPU since.
    pub ends_wait: bool,
    pub statistics: VcpuStatistics,
}

impl Vcpu {
    /// Time until its present layer is done, while it runs; `NEVER_NS` if it does not end by itself.
    #[inline]
    pub fn due_in_ns(&self) -> u64 {
        if !self.inside {
            return self.host_left_ns;
        }
        if let Some((_, left_ns)) = self.handler {
            return left_ns;
        }
        match &self.base {
            Base::Work { left_ns } | Base::Access { left_ns, .. } => *left_ns,
            Base::Spin(spin) => {
                let limit_in_ns = spin.limit_ns.saturating_sub(spin.spent_ns);
                let help_in_ns = spin.help_at_ns.saturating_sub(spin.spent_ns);
                let others_in_ns = limit_in_ns.min(help_in_ns);
                others_in_ns
                    .min(spin.seen_in_ns)
                    .min(self.pauses.exit_in_ns)
            }
            Base::Answer(_) => 0,
            Base::Halted | Base::Faulted | Base::Done => NEVER_NS,
        }
    }

    /// `elapsed_ns` has passed on a pCPU; at most `due_in_ns`.
    #[inline]
    pub fn progress(&mut self, elapsed_ns: u64) {
        if !self.inside {
            self.host_left_ns -= elapsed_ns;
            self.statistics.host_ns += elapsed_ns;
            if self.then == Then::OnSpin || self.pending_ipi.spins {
                self.statistics.spin_host_ns += elapsed_ns;
            }
            if self.ends_wait {
                self.statistics.wait_host_ns += elapsed_ns;
            }
            return;
        }
        if let Some((_, left_ns)) = &mut self.handler {
            *left_ns -= elapsed_ns;
            return;
        }
        match &mut self.base {
            Base::Work { left_ns } | Base::Access { left_ns, .. } => *left_ns -= elapsed_ns,
            Base::Spin(spin) => {
                spin.spent_ns += elapsed_ns;
                if spin.seen_in_ns != NEVER_NS {
                    spin.seen_in_ns -= elapsed_ns;
                }
                if self.pauses.exit_in_ns != NEVER_NS {
                    self.pauses.exit_in_ns -= elapsed_ns;
                }
                self.pauses.stretch_ns += elapsed_ns;
                self.statistics.spin_ns += elapsed_ns;
            }
            Base::Answer(_) | Base::Halted | Base::Faulted | Base::Done => {}
        }
    }
}
