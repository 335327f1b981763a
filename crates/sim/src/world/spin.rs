// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting loops: how long so many turns take, when the hardware ends them, and what ends them otherwise. A waiter's polls
//! are no events: the world knows when the word changes.

use super::{
    World,
    vcpu::{Base, Spin, Then},
};
use crate::{
    engine::NEVER_NS,
    guest::memory::Word,
    happening::{Happening, Observer},
    ids::Cpu,
};

impl<O: Observer> World<O> {
    /// So many turns of a waiting loop of that vCPU, ns; `NEVER_NS` for `PLATFORM_FOREVER`.
    pub(super) fn turns_ns(&self, vcpu: usize, turns: u32) -> u64 {
        if turns == u32::MAX {
            return NEVER_NS;
        }
        let vm = &self.vms[self.vcpus[vcpu].vm as usize];
        let pauses = u64::from(turns / vm.pause_every_turns);
        let turn_ps = u64::from(turns) * u64::from(self.costs.wait_turn_ps);
        (turn_ps + pauses * u64::from(self.costs.pause_ps)).div_ceil(1_000)
    }

    /// From one PAUSE of that vCPU's waiting loop to the next, picoseconds.
    fn pause_period_ps(&self, vcpu: usize) -> u64 {
        let vm = &self.vms[self.vcpus[vcpu].vm as usize];
        let turn_ps = u64::from(self.costs.wait_turn_ps);
        u64::from(vm.pause_every_turns) * turn_ps + u64::from(self.costs.pause_ps)
    }

    /// At VMRUN the count of PAUSEs starts anew (AMD64 APM vol. 2, 15.14.4).
    pub(super) fn reload_pause_loop(&mut self, vcpu: usize) {
        let vm = &self.vms[self.vcpus[vcpu].vm as usize];
        if !vm.pause_exits || self.host.pause_window == 0 {
            self.vcpus[vcpu].pause_loop.left_ns = NEVER_NS;
            return;
        }
        let pauses = u64::from(self.vcpus[vcpu].pause_loop.window) + 1;
        let left_ns = (pauses * self.pause_period_ps(vcpu)).div_ceil(1_000);
        self.vcpus[vcpu].pause_loop.left_ns = left_ns;
    }

    /// A wait begins with a look.
    pub(super) fn spin_begin(&mut self, cpu: Cpu, vcpu: usize, mut spin: Spin) {
        let vm = self.vcpus[vcpu].vm as usize;
        let (word, watcher) = (spin.watcher.word, spin.watcher);
        let debt_ns = std::mem::take(&mut self.vcpus[vcpu].debt_ns);
        if watcher.is_over(self.vms[vm].memory.get(word)) {
            spin.seen_in_ns = self.look_ns(cpu, vm, word) + debt_ns;
            spin.watcher.looks = false;
        }
        let line = self.vms[vm].memory.line_mut(word);
        line.share(cpu);
        line.watchers.push(spin.watcher);
        // A PAUSE later than the threshold after the last begins a new loop.
        let pause_loop = self.vcpus[vcpu].pause_loop;
        if self.now_ns - pause_loop.last_ns > self.host.pause_gap_ns {
            self.reload_pause_loop(vcpu);
        }
        self.vcpus[vcpu].base = Base::Spin(spin);
    }

    /// One look at a word, ns.
    fn look_ns(&self, cpu: Cpu, vm: usize, word: Word) -> u64 {
        let line = self.vms[vm].memory.line(word);
        let ns = match line.owner() {
            _ if line.has_copy(cpu) => self.costs.line_hit_ns,
            Some(owner) => self.costs.line_ns(self.topology.distance(owner, cpu)),
            None => self.costs.line_cache_ns,
        };
        ns.into()
    }

    /// The guest is left, or a handler has the vCPU: a waiter does not look any more.
    #[inline]
    pub(super) fn looks_away(&mut self, vcpu: usize) {
        if let Base::Spin(spin) = &mut self.vcpus[vcpu].base {
            spin.seen_in_ns = NEVER_NS;
            let word = spin.watcher.word;
            let vm = self.vcpus[vcpu].vm as usize;
            let line = self.vms[vm].memory.line_mut(word);
            line.set_looks(vcpu as u32, false);
        }
    }

    /// The guest goes on after the host or a handler had the pCPU: a waiter looks first.
    pub(super) fn go_on(&mut self, cpu: Cpu, vcpu: usize) {
        match self.vcpus[vcpu].base {
            Base::Spin(spin) => self.look_again(cpu, vcpu, spin),
            // Nothing that it waits for: it halts again. Who is done still answers the others.
            Base::Halted | Base::Done => self.halt_again(cpu, vcpu),
            _ => {}
        }
    }

    fn look_again(&mut self, cpu: Cpu, vcpu: usize, mut spin: Spin) {
        let vm = self.vcpus[vcpu].vm as usize;
        let word = spin.watcher.word;
        let over = spin.watcher.is_over(self.vms[vm].memory.get(word));
        spin.seen_in_ns = if over {
            self.look_ns(cpu, vm, word)
        } else {
            NEVER_NS
        };
        let line = self.vms[vm].memory.line_mut(word);
        line.share(cpu);
        line.set_looks(vcpu as u32, !over);
        self.vcpus[vcpu].base = Base::Spin(spin);
    }

    /// A wait's next turn has come: it sees the change, its turns are spent, or the hardware ends it.
    pub(super) fn spin_due(&mut self, cpu: Cpu, vcpu: usize, mut spin: Spin) {
        let vm = self.vcpus[vcpu].vm as usize;
        let word = spin.watcher.word;
        let value = self.vms[vm].memory.get(word);
        if spin.seen_in_ns == 0 {
            self.vms[vm].memory.line_mut(word).share(cpu);
            if spin.watcher.is_over(value) {
                self.spin_end(cpu, vcpu, spin, value);
            } else {
                // It changed back before this waiter had its copy.
                spin.seen_in_ns = NEVER_NS;
                self.vcpus[vcpu].base = Base::Spin(spin);
                let line = self.vms[vm].memory.line_mut(word);
                line.set_looks(vcpu as u32, true);
            }
        } else if spin.spent_ns >= spin.limit_ns {
            self.spin_end(cpu, vcpu, spin, spin.watcher.value);
        } else {
            self.pause_exit(cpu, vcpu);
        }
    }

    fn spin_end(&mut self, cpu: Cpu, vcpu: usize, spin: Spin, seen: u32) {
        let vm = self.vcpus[vcpu].vm as usize;
        let watchers = &mut self.vms[vm].memory.line_mut(spin.watcher.word).watchers;
        if let Some(place) = watchers.iter().position(|one| one.vcpu as usize == vcpu) {
            watchers.remove(place);
        }
        self.ask(cpu, vcpu, seen);
    }

    fn pause_exit(&mut self, cpu: Cpu, vcpu: usize) {
        let window = self.vcpus[vcpu].pause_loop.window;
        self.tell(cpu, Happening::PauseExit { window });
        self.vcpus[vcpu].statistics.pause_exits += 1;
        let work_ns = self.costs.exit_ns + self.costs.on_spin_ns;
        self.leave_guest(vcpu, work_ns, Then::OnSpin);
    }
}
