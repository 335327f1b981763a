// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting loops: how long they take, when the hardware ends them, and what else ends them. A waiter's polls are no
//! events: the world computes when the word changes.

use unspin_policy::{Control, Spin as PauseSpin, WaitExit, auto::StretchEnd};

use super::{
    World,
    vcpu::{Base, Spin, Then},
};
use crate::{
    engine::NEVER_NS,
    guest::Word,
    ids::Cpu,
    trace_event::{ExitReason, Observer, TraceEvent},
};

impl<O: Observer> World<O> {
    /// The time of that many spins of that vCPU's waiting loop, ns; `NEVER_NS` for `PLATFORM_FOREVER`.
    pub(super) fn spins_ns(&self, vcpu: usize, spins: u32) -> u64 {
        if spins == u32::MAX {
            return NEVER_NS;
        }
        let vm = &self.vms[self.vcpus[vcpu].vm as usize];
        let pauses = u64::from(spins / vm.pause_every_spins);
        let spin_ps = u64::from(spins) * u64::from(self.costs.wait_spin_ps);
        (spin_ps + pauses * u64::from(self.costs.pause_ps)).div_ceil(1_000)
    }

    /// How long a vCPU of that guest waits for a lock before each call for help, ns; `NEVER_NS`: it never calls.
    pub(super) fn help_after_ns(&self, vcpu: usize) -> u64 {
        let spins = self.vms[self.vcpus[vcpu].vm as usize].help_after_spins;
        match spins {
            0 => NEVER_NS,
            _ if self.vcpus[vcpu].asks.is_none() => NEVER_NS,
            spins => self.spins_ns(vcpu, self.spin_count(vcpu, spins)).max(1),
        }
    }

    /// Time from one PAUSE of that vCPU's waiting loop to the next, TSC cycles.
    fn pause_period_cycles(&self, vcpu: usize) -> u64 {
        let vm = &self.vms[self.vcpus[vcpu].vm as usize];
        let spin_ps = u64::from(self.costs.wait_spin_ps);
        let period_ps = u64::from(vm.pause_every_spins) * spin_ps + u64::from(self.costs.pause_ps);
        (period_ps * u64::from(self.costs.tsc_mhz) / 1_000_000).max(1)
    }

    fn cycles(&self, ns: u64) -> u64 {
        ns.saturating_mul(self.costs.tsc_mhz.into()) / 1_000
    }

    /// The guest is entered: the hardware's count starts again.
    pub(super) fn pause_loop_entered(&mut self, vcpu: usize) {
        let known = &mut self.vcpus[vcpu];
        let hardware = known.pauses.hardware;
        known.pauses.memory.entered(&hardware);
    }

    /// A stretch of spinning begins, on a pCPU and in the loop: computes when it will exit.
    fn stretch_begin(&mut self, vcpu: usize) {
        let vm = &self.vms[self.vcpus[vcpu].vm as usize];
        if !vm.pause_exits || self.host.window.control() == Control::Off {
            return;
        }
        let period_cycles = self.pause_period_cycles(vcpu);
        let now_cycles = self.cycles(self.now_ns);
        let tsc_mhz = u64::from(self.costs.tsc_mhz);
        let known = &mut self.vcpus[vcpu];
        let first_cycles =
            now_cycles + period_cycles - known.pauses.phase_cycles.min(period_cycles - 1);
        let stretch = PauseSpin::new(first_cycles, period_cycles, known.user);
        let exits = known.pauses.memory.exits(&known.pauses.hardware, &stretch);
        known.pauses.exit_in_ns = exits.map_or(NEVER_NS, |pause| {
            let cycles = first_cycles - now_cycles + pause.saturating_mul(period_cycles);
            (cycles.saturating_mul(1_000) / tsc_mhz).clamp(1, NEVER_NS)
        });
        known.pauses.stretch = Some(stretch);
        known.pauses.stretch_ns = 0;
    }

    /// The stretch ends: the hardware keeps the count of its PAUSEs.
    fn stretch_end(&mut self, vcpu: usize) {
        let period_cycles = self.pause_period_cycles(vcpu);
        let elapsed_cycles = self.cycles(self.vcpus[vcpu].pauses.stretch_ns);
        let known = &mut self.vcpus[vcpu];
        known.pauses.exit_in_ns = NEVER_NS;
        let Some(stretch) = known.pauses.stretch.take() else {
            return;
        };
        let done = elapsed_cycles + known.pauses.phase_cycles;
        let pauses = done / period_cycles;
        known.pauses.phase_cycles = done % period_cycles;
        let hardware = known.pauses.hardware;
        let most = known.pauses.memory.exits(&hardware, &stretch);
        let pauses = most.map_or(pauses, |most| pauses.min(most));
        known.pauses.memory.spun(&hardware, &stretch, pauses);
        known.statistics.pauses += pauses;
    }

    /// A wait begins with a read of the word.
    pub(super) fn spin_begin(&mut self, cpu: Cpu, vcpu: usize, mut spin: Spin) {
        let vm = self.vcpus[vcpu].vm as usize;
        let (word, watcher) = (spin.watcher.word, spin.watcher);
        let debt_ns = std::mem::take(&mut self.vcpus[vcpu].debt_ns);
        if watcher.is_over(self.vms[vm].memory.get(word)) {
            spin.seen_in_ns = self.line_read_ns(cpu, vm, word) + debt_ns;
            spin.watcher.looks = false;
        }
        let line = self.vms[vm].memory.line_mut(word);
        line.share(cpu);
        line.watchers.push(spin.watcher);
        self.stretch_begin(vcpu);
        self.vcpus[vcpu].base = Base::Spin(spin);
    }

    /// The time of one read of a word, ns.
    fn line_read_ns(&self, cpu: Cpu, vm: usize, word: Word) -> u64 {
        let line = self.vms[vm].memory.line(word);
        let ns = match line.owner() {
            _ if line.has_copy(cpu) => self.costs.line_hit_ns,
            Some(owner) => self.costs.line_ns(self.topology.distance(owner, cpu)),
            None => self.costs.line_cache_ns,
        };
        ns.into()
    }

    /// An exit, or an interrupt handler on the vCPU: a waiter stops polling.
    #[inline]
    pub(super) fn looks_away(&mut self, vcpu: usize) {
        if let Base::Spin(spin) = &mut self.vcpus[vcpu].base {
            spin.seen_in_ns = NEVER_NS;
            let word = spin.watcher.word;
            self.stretch_end(vcpu);
            let vm = self.vcpus[vcpu].vm as usize;
            let line = self.vms[vm].memory.line_mut(word);
            line.set_looks(vcpu as u32, false);
        }
    }

    /// The guest continues after the host or a handler had the pCPU: a waiter reads its word first.
    pub(super) fn go_on(&mut self, cpu: Cpu, vcpu: usize) {
        match self.vcpus[vcpu].base {
            Base::Spin(spin) => self.look_again(cpu, vcpu, spin),
            // The interrupt was not what it waits for: it halts again. A vCPU that is done still answers the others.
            Base::Halted | Base::Faulted | Base::Done => self.guest_blocks(cpu, vcpu),
            _ => {}
        }
    }

    fn look_again(&mut self, cpu: Cpu, vcpu: usize, mut spin: Spin) {
        let vm = self.vcpus[vcpu].vm as usize;
        let word = spin.watcher.word;
        let over = spin.watcher.is_over(self.vms[vm].memory.get(word));
        spin.seen_in_ns = if over {
            self.line_read_ns(cpu, vm, word)
        } else {
            NEVER_NS
        };
        let line = self.vms[vm].memory.line_mut(word);
        line.share(cpu);
        line.set_looks(vcpu as u32, !over);
        self.vcpus[vcpu].base = Base::Spin(spin);
        self.stretch_begin(vcpu);
    }

    /// The wait's next event is due: it sees the change, its spins are used up, or the hardware ends the spin.
    pub(super) fn spin_due(&mut self, cpu: Cpu, vcpu: usize, mut spin: Spin) {
        let vm = self.vcpus[vcpu].vm as usize;
        let word = spin.watcher.word;
        let value = self.vms[vm].memory.get(word);
        if spin.seen_in_ns == 0 {
            self.vms[vm].memory.line_mut(word).share(cpu);
            if spin.watcher.is_over(value) {
                self.spin_end(cpu, vcpu, spin, value);
            } else {
                // The word changed back before this waiter had its copy.
                spin.seen_in_ns = NEVER_NS;
                self.vcpus[vcpu].base = Base::Spin(spin);
                let line = self.vms[vm].memory.line_mut(word);
                line.set_looks(vcpu as u32, true);
            }
        } else if spin.spent_ns >= spin.limit_ns {
            let seen = if spin.watcher.until {
                value
            } else {
                spin.watcher.value
            };
            self.spin_end(cpu, vcpu, spin, seen);
        } else if spin.spent_ns >= spin.help_at_ns {
            spin.help_at_ns = spin.spent_ns.saturating_add(self.help_after_ns(vcpu));
            self.vcpus[vcpu].base = Base::Spin(spin);
            self.threshold_exit(vcpu, WaitExit::Help);
            let work_ns = self.costs.hypercall_ns;
            self.exit(cpu, vcpu, ExitReason::Hypercall, work_ns, Then::Help);
        } else {
            self.pause_exit(cpu, vcpu);
        }
    }

    fn spin_end(&mut self, cpu: Cpu, vcpu: usize, spin: Spin, seen: u32) {
        self.stretch_end(vcpu);
        let vm = self.vcpus[vcpu].vm as usize;
        let watchers = &mut self.vms[vm].memory.line_mut(spin.watcher.word).watchers;
        if let Some(place) = watchers.iter().position(|one| one.vcpu as usize == vcpu) {
            watchers.remove(place);
        }
        self.ask(cpu, vcpu, seen);
    }

    fn pause_exit(&mut self, cpu: Cpu, vcpu: usize) {
        let window = self.vcpus[vcpu].pauses.hardware.window();
        self.emit(cpu, TraceEvent::PauseExit { window });
        self.vcpus[vcpu].statistics.pause_exits += 1;
        self.learn_place(vcpu);
        self.meter_exit(vcpu, StretchEnd::PauseLoop);
        let work_ns = self.costs.exit_ns + self.costs.on_spin_ns;
        self.leave_guest(vcpu, work_ns, Then::OnSpin);
        self.window_after_exit(vcpu, window);
    }
}
