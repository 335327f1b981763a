// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a vCPU is doing, in layers: the host's work for it is done first, then an interrupt handler, then the guest task.

use std::collections::VecDeque;

use unspin_policy::{Ecs, PauseHardware, PauseLoop, Spin as PauseSpin, steering::Memory};

use crate::{
    engine::NEVER_NS,
    guest::{Port, Watcher, Word},
    ids::{Cpu, Task},
    random::Random,
    trace_event::Vector,
};

/// What follows when the host's work for a vCPU is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The guest is entered.
    Enter,
    /// `kvm_vcpu_on_spin()` chooses somebody.
    OnSpin,
    /// HLT: nothing to do, perhaps.
    Halt,
    /// Halt polling is over without success.
    PollOver,
    /// What the guest asked for by writing to its interrupt controller.
    Send(Sending),
    /// The hypercall by which a borrowed pCPU is given back.
    GiveBack,
    /// The hypercall that asks for help.
    Help,
    /// The hypercall that asks for help and names a vCPU of the world (`kvm_sched_yield()`).
    HelpNamed(u32),
    /// The host fetches a page; whether the guest is notified meanwhile.
    Fault(bool),
}

/// To whom an inter-processor interrupt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// To all others: answer me.
    Shootdown,
    /// To the next vCPU: there is a token.
    Token,
    /// To that vCPU of the VM, by hypercall: its halt is over (`kvm_pv_kick_cpu_op()`).
    Kick(u32),
    /// To that vCPU of the VM: one of its tasks has something to look at.
    Wake(u32),
}

/// What the guest task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// So much work.
    Work { left_ns: u64 },
    /// An access to a word, which happens at its end.
    Access { left_ns: u64, access: Access },
    /// A wait for a word to change.
    Spin(Spin),
    /// The answer to its last request is there.
    Answer(u32),
    /// HLT, or another guest task runs until something comes.
    Halted,
    /// It waits for a page that the host fetches.
    Faulted,
    /// Its iterations are done: it only answers interrupts.
    Done,
}

/// A guest task that does not have its vCPU.
pub(super) struct GuestTask {
    pub port: Port,
    pub base: Base,
    pub user: bool,
    pub debt_ns: u64,
}

impl GuestTask {
    /// Whether it could run.
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

/// A wait: `platform_wait_while()` or `platform_wait_until()`. What it waits for is the watcher's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spin {
    pub watcher: Watcher,
    /// Time after which the iterations are spent; `NEVER_NS`: no bound.
    pub limit_ns: u64,
    /// Time spent so far on a pCPU.
    pub spent_ns: u64,
    /// From now until a change is seen; `NEVER_NS`: none on its way.
    pub seen_in_ns: u64,
    /// Time on a pCPU after which it asks for help next; `NEVER_NS`: never.
    pub help_at_ns: u64,
}

/// Interrupts that wait to be taken, a bit each; taken in this order.
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
    /// Since the last PAUSE, in the loop.
    pub phase_cycles: u64,
    /// The stretch of waiting that goes on, and for how long it has.
    pub stretch: Option<PauseSpin>,
    pub stretch_ns: u64,
    /// From now until it exits; `NEVER_NS`: it does not.
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

/// What `kvm_vcpu_on_spin()` and its baselines remember of a vCPU (`policy/steering/candidate.h`). One bit per vCPU of the VM where it is
/// a mask.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PendingIpi {
    /// It left its pCPU in a pause-loop exit.
    pub spins: bool,
    /// It was passed over as a lock waiter: `dy_eligible`.
    pub eligible: bool,
    /// Woken, and not run since.
    pub woken: bool,
    /// Who sent it an IPI while it was off its pCPU, since it ran last; what for, and when.
    pub sent_by: u64,
    pub vector: Option<Vector>,
    pub sent_ns: u64,
    /// Who passed it over while it was halted, since it ran last.
    pub passed_by: u64,
}

/// What a vCPU did; times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VcpuStatistics {
    /// Iterations done.
    pub operations: u64,
    /// Locks taken.
    pub acquisitions: u64,
    /// From asking for locks until they were held.
    pub lock_wait_ns: u64,
    /// The longest of these.
    pub longest_wait_ns: u64,
    /// Time in which locks were held, on a pCPU or not.
    pub hold_ns: u64,
    /// On a pCPU in the loop of a wait.
    pub spin_ns: u64,
    /// PAUSEs, where they may exit.
    pub pauses: u64,
    /// Pause-loop exits.
    pub pause_exits: u64,
    /// Calls of `yield_to()` that were done, and that were not.
    pub yields: u64,
    /// See `yields`.
    pub yields_refused: u64,
    /// Loans that it got, extra time at slice ends, and how often it gave a pCPU back before its time was up.
    pub loans: u64,
    /// See `loans`.
    pub grants: u64,
    /// See `loans`.
    pub given_back: u64,
    /// Times somebody was let run because it asked for help.
    pub helped: u64,
    /// Slice boundaries that it reached with a lock asked for or held (ruling 22).
    pub boundaries_critical: u64,
    /// Times it was taken off its pCPU while it wanted to go on.
    pub preemptions: u64,
    /// Of them while it held a lock.
    pub preemptions_holding: u64,
    /// Of them while it waited for one.
    pub preemptions_waiting: u64,
    /// Shootdowns that it sent, and those that it answered.
    pub shootdowns: u64,
    /// See `shootdowns`.
    pub shootdowns_answered: u64,
    /// Tokens that it passed on.
    pub wakeups: u64,
    /// Kicks of other vCPUs.
    pub kicks: u64,
    /// Times it went to sleep in the host.
    pub halts: u64,
    /// Pages that the host had to fetch.
    pub page_faults: u64,
    /// Switches between guest tasks.
    pub guest_switches: u64,
    /// Guest ticks handled.
    pub ticks: u64,
    /// Host work done on its account: exits, entries, switches.
    pub host_ns: u64,
    /// Of it what pause-loop exits took.
    pub spin_host_ns: u64,
    /// Waits that the guest ended at the threshold that it was notified of, the sum of these thresholds, and of the host's time what it
    /// took to handle them.
    pub waits_ended: u64,
    /// See `waits_ended`.
    pub waited_spins: u64,
    /// See `waits_ended`.
    pub wait_host_ns: u64,
}

/// What our scheduler remembers of a vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steered {
    /// When it was out of its guest last.
    pub exit_ns: u64,
    pub yielded_ns: Option<u64>,
    /// Pause-loop exits since its iteration began.
    pub spun: u32,
    pub borrowed_since_ns: Option<u64>,
    pub ran_on: Option<Cpu>,
    /// It was entered on borrowed time.
    pub entered_borrowing: bool,
}

/// A vCPU.
pub(super) struct Vcpu {
    pub port: Port,
    pub vm: u32,
    /// For what happens to it by chance.
    pub random: Random,
    /// In its VM.
    pub number: u32,
    pub task: Task,
    /// The guest was entered and not left: its code runs when the vCPU does.
    pub inside: bool,
    pub host_left_ns: u64,
    pub then: Then,
    pub handler: Option<(Vector, u64)>,
    pub base: Base,
    /// Time of accesses that took effect at once, ns: part of what comes next.
    pub debt_ns: u64,
    pub user: bool,
    pub pending: Pending,
    /// Who waits for this vCPU's answer, one bit each.
    pub senders: u64,
    pub tokens: u32,
    /// Kicked since it looked last (`pv_unhalted`).
    pub kicked: bool,
    pub pauses: Pauses,
    pub pending_ipi: PendingIpi,
    /// Guest tasks that do not have the vCPU, in order of their iterations.
    pub others: VecDeque<GuestTask>,
    /// When the page is there that the guest was notified of, and when the thread wakes that waits for one; `NEVER_NS`: none.
    pub page_ns: u64,
    pub sleeps_until_ns: u64,
    /// When the guest's timer fires; `NEVER_NS`: it has none.
    pub timer_ns: u64,
    /// Lock asked for, and since when.
    pub asks: Option<(u32, u64)>,
    /// Lock held, and since when.
    pub holds: Option<(u32, u64)>,
    /// Locks asked for and held: what its pv page says.
    pub critical: u32,
    /// The flag in its pv page: it runs on time that is not its own.
    pub borrowed: bool,
    pub steered: Steered,
    pub memory: Memory,
    /// Its extra schedules, where the host gives them.
    pub ecs: Option<Ecs>,
    /// The halt polling time in force (`kvm_vcpu_halt()`).
    pub halt_poll_ns: u32,
    pub halted_since_ns: Option<u64>,
    /// Iterations that its guest's page says; 0: nothing.
    pub notified_spin_count: u32,
    /// It left its guest at the end of a wait that counts, and neither entered it nor left its pCPU since.
    pub ends_wait: bool,
    pub statistics: VcpuStatistics,
}

impl Vcpu {
    /// From now until its present layer is done, while it runs; `NEVER_NS` if by itself never.
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
                let iterations = spin.limit_ns.saturating_sub(spin.spent_ns);
                let help = spin.help_at_ns.saturating_sub(spin.spent_ns);
                let others = iterations.min(help);
                others.min(spin.seen_in_ns).min(self.pauses.exit_in_ns)
            }
            Base::Answer(_) => 0,
            Base::Halted | Base::Faulted | Base::Done => NEVER_NS,
        }
    }

    /// So much time has passed on a pCPU. At most `due_in_ns`.
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
