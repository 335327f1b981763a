// SPDX-License-Identifier: MIT OR Apache-2.0
//! One VM while its events go by: each vCPU's state, the pause-loop exits being handled, and the sums.

use std::collections::BTreeMap;

use unspin_events::{Event, What};
use unspin_policy::{Outcome, Run, RunExit, RunRule, Where};

use crate::exits::{
    Sight, VmExits,
    ipi_record::{Ipi, IpiRecord, LastIpi, ReceiverState},
    pending::{Other, Pending, Target},
    reasons::Evidence,
    vcpu::{State, Vcpu, place},
};

#[derive(Clone, Debug, Default)]
struct Seat {
    vcpu: Vcpu,
    cpu: Option<u16>,
    pending: Option<Pending>,
    last_ipi: LastIpi,
    run: Run,
    run_through: Run,
}

/// One VM.
pub(crate) struct Vm {
    seats: BTreeMap<u16, Seat>,
    sums: VmExits,
}

/// A pause-loop exit's own part of the event.
struct PauseExit {
    location: Option<u64>,
    mode: Option<Where>,
    window: Option<u32>,
    inside_ns: u32,
    run: RunExit,
}

impl Vm {
    /// A VM of those vCPUs, of which nothing is known yet.
    pub fn new(vcpus: impl IntoIterator<Item = u16>) -> Vm {
        let seats: BTreeMap<u16, Seat> = vcpus
            .into_iter()
            .map(|number| (number, Seat::default()))
            .collect();
        let sums = VmExits {
            vcpus: seats.len() as u64,
            ..VmExits::default()
        };
        Vm { seats, sums }
    }

    /// Takes an event of its vCPU `number`.
    pub fn add(&mut self, event: &Event, number: u16, sight: &Sight, ipis: &mut IpiRecord) {
        let now_ns = event.time_ns;
        let first_ns = self.sums.seen_ns.map_or(now_ns, |(first_ns, _)| first_ns);
        self.sums.seen_ns = Some((first_ns, now_ns));
        self.step(event, number, ipis);
        match event.what {
            What::PauseExit {
                guest_rip: location,
                mode,
                window,
                inside_ns,
                other_exits,
                interrupt_exits,
            } => {
                let exit = PauseExit {
                    location,
                    mode: place(mode),
                    window,
                    inside_ns,
                    run: RunExit {
                        location,
                        other_exits: other_exits.into(),
                        interrupt_exits: interrupt_exits.into(),
                    },
                };
                self.pause_exit(now_ns, number, &exit, sight);
            }
            What::KvmVcpuOnSpin => self.look(now_ns, number, sight),
            What::YieldTo {
                result,
                target_vcpu,
                ..
            } => self.yielded(number, result, target_vcpu),
            What::PauseEntry { handling_ns, .. } => {
                self.sums.epochs.add_handling(handling_ns);
                self.judge(number, true);
            }
            What::Ipi {
                receiver_vcpu,
                vector,
                form,
                ..
            } => {
                let ipi = Ipi {
                    sent_ns: now_ns,
                    vm: event.vm.unwrap_or_default(),
                    sender: number,
                    receiver: receiver_vcpu,
                    vector,
                    form,
                    state: ReceiverState::Unknown,
                    delay_ns: None,
                };
                self.ipi(ipi, ipis);
            }
            _ => {}
        }
    }

    /// Events are missing.
    pub fn forget(&mut self) {
        let numbers: Vec<u16> = self.seats.keys().copied().collect();
        for number in numbers {
            self.forget_vcpu(number);
        }
    }

    /// Nothing is known of that vCPU any more.
    pub fn forget_vcpu(&mut self, number: u16) {
        self.sums.epochs.forget();
        let vcpus = self.sums.vcpus;
        let Some(seat) = self.seats.get_mut(&number) else {
            return;
        };
        seat.vcpu.forget();
        seat.cpu = None;
        seat.last_ipi = LastIpi::default();
        if let Some(pending) = &mut seat.pending {
            pending.forget();
        }
        self.sums.runs.add(seat.run.end(), vcpus);
        self.sums
            .runs_through_interrupts
            .add(seat.run_through.end(), vcpus);
    }

    /// Ends: exits that are still being handled are judged by what is known.
    pub fn finish(mut self) -> VmExits {
        let numbers: Vec<u16> = self.seats.keys().copied().collect();
        for number in numbers {
            self.judge(number, false);
            self.forget_vcpu(number);
        }
        self.sums
    }

    /// The vCPU's state, CPU time, and what its running ends.
    fn step(&mut self, event: &Event, number: u16, ipis: &mut IpiRecord) {
        let seat = self.seats.entry(number).or_default();
        let was_running = seat.vcpu.state() == State::Running;
        let ran_ns = seat.vcpu.step(event.time_ns, &event.what);
        if let What::SwitchOut {
            mode, exit_code, ..
        } = event.what
        {
            // Whoever waits for answers neither halts nor returns to user mode. It may sleep in the host: a page fault.
            if exit_code.is_some_and(is_halt) || place(mode) == Some(Where::User) {
                seat.last_ipi.over();
            }
        }
        let runs = seat.vcpu.state() == State::Running;
        // A waking thread's event names the pCPU of whoever wakes it.
        if !matches!(event.what, What::SchedWakeup { .. }) {
            seat.cpu = Some(event.cpu);
        }
        self.sums.epochs.add_cpu(ran_ns);
        self.sums.cpu_ns += ran_ns;
        if runs && !was_running {
            for seat in self.seats.values_mut() {
                seat.vcpu.received(number);
            }
            ipis.scheduled(event.time_ns, event.vm.unwrap_or_default(), number);
        }
    }

    fn pause_exit(&mut self, now_ns: u64, number: u16, exit: &PauseExit, sight: &Sight) {
        self.judge(number, false); // of an exit before whose entry was missed
        let vcpus = self.sums.vcpus;
        let seat = self.seats.entry(number).or_default();
        let ended = seat.run.add(exit.run, RunRule::InterruptsEnd);
        self.sums.runs.add(ended, vcpus);
        let ended = seat.run_through.add(exit.run, RunRule::InterruptsIgnored);
        self.sums.runs_through_interrupts.add(ended, vcpus);
        if exit.location.is_none() {
            self.sums.exits_without_location += 1;
        }
        self.sums
            .epochs
            .add_time(&seat.run, exit.window, exit.inside_ns);
        let waits = seat.vcpu.waits();
        seat.last_ipi.spins(exit.location, exit.mode, waits);
        let (ipi, vector) = seat.last_ipi.evidence(exit.location, waits, sight);
        seat.pending = Some(Pending::new(exit.location, exit.mode, ipi, vector));
        if self.sums.epochs.add_exit(now_ns, exit.window) {
            self.end_epoch(now_ns);
        }
    }

    fn end_epoch(&mut self, now_ns: u64) {
        for seat in self.seats.values_mut() {
            let ran_ns = seat.vcpu.count(now_ns);
            self.sums.epochs.add_cpu(ran_ns);
            self.sums.cpu_ns += ran_ns;
        }
        let mut states = self.seats.values().map(|seat| seat.vcpu.state());
        let all_known = !states.any(|state| state == State::Unknown);
        self.sums.epochs.end(now_ns, all_known);
    }

    /// kvm_vcpu_on_spin() begins: what the others are doing is what it sees.
    fn look(&mut self, now_ns: u64, number: u16, sight: &Sight) {
        let Some(spinner) = self.seats.get(&number) else {
            return;
        };
        let others = self
            .seats
            .iter()
            .filter(|&(&other, _)| other != number)
            .map(|(&other, seat)| {
                let receiver = spinner.vcpu.waits_for(other, &seat.vcpu);
                Other {
                    number: other,
                    candidate: seat.vcpu.candidate(receiver.filter(|_| !sight.ipi_blind)),
                }
            })
            .collect();
        let seat = self.seats.entry(number).or_default();
        if let Some(pending) = &mut seat.pending {
            pending.look(now_ns, others);
        }
    }

    fn yielded(&mut self, number: u16, result: i64, target: Option<u16>) {
        let target_seat = target.and_then(|target| self.seats.get(&target));
        let spinner_cpu = self.seats.get(&number).and_then(|seat| seat.cpu);
        let told = Target {
            number: target,
            same_cpu: target_seat
                .and_then(|seat| seat.cpu)
                .zip(spinner_cpu)
                .map(|(one, other)| one == other),
        };
        let seat = self.seats.entry(number).or_default();
        if let Some(pending) = &mut seat.pending {
            pending.yielded(result, told);
        }
    }

    /// The exit that is being handled is over. `entered`: the guest was entered again.
    fn judge(&mut self, number: u16, entered: bool) {
        let seat = self.seats.entry(number).or_default();
        let Some(pending) = seat.pending.take() else {
            return;
        };
        let target = pending.target().and_then(|target| self.seats.get(&target));
        let target_in_ns = target
            .filter(|seat| seat.vcpu.state() != State::Unknown)
            .map(|seat| seat.vcpu.last_in_ns());
        let outcome = pending.outcome(entered, target_in_ns);
        self.sums.outcomes[outcome as usize] += 1;
        self.sums.boosted += u64::from(pending.is_boosted());
        if outcome == Outcome::Mismatch && pending.boosted_on_same_cpu() == Some(true) {
            self.sums.mismatch_same_cpu += 1;
        }
        let evidence = Evidence::new(pending.mode, pending.ipi, pending.vector);
        self.sums.locations.add(pending.location, evidence, outcome);
    }

    fn ipi(&mut self, mut ipi: Ipi, ipis: &mut IpiRecord) {
        let state = self
            .seats
            .get(&ipi.receiver)
            .map_or(State::Unknown, |seat| seat.vcpu.state());
        ipi.state = ReceiverState::of(state);
        ipis.sent(ipi);
        if ipi.receiver == ipi.sender {
            return; // nobody waits for that
        }
        let seat = self.seats.entry(ipi.sender).or_default();
        seat.vcpu.sent(ipi.sent_ns, ipi.receiver, state);
        seat.last_ipi.sent(ipi.vector);
    }
}

/// Whether that is the exit of HLT: SVM_EXIT_HLT (arch/x86/include/uapi/asm/svm.h) or EXIT_REASON_HLT (vmx.h), whose high
/// half holds flags. As the other kind's, either is a register access that KVM does not intercept or no exit at all.
fn is_halt(exit_code: u32) -> bool {
    exit_code == 0x78 || exit_code & 0xffff == 12
}
