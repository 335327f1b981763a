// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses to words: their cost, their effect, and which waiters see it.

use super::{
    World,
    vcpu::{Access, Base},
};
use crate::{
    guest::{Memory, Word, raw},
    ids::Cpu,
    trace_event::Observer,
};

impl<O: Observer> World<O> {
    #[inline]
    pub(super) fn memory_of(&self, vcpu: usize) -> &Memory {
        &self.vms[self.vcpus[vcpu].vm as usize].memory
    }

    #[inline]
    fn memory_of_mut(&mut self, vcpu: usize) -> &mut Memory {
        &mut self.vms[self.vcpus[vcpu].vm as usize].memory
    }

    /// An access begins. If this pCPU has the line, it takes effect at once, and its time is added to what comes next.
    /// Otherwise it waits until the line has been transferred for earlier accesses, and keeps it busy for its own.
    #[inline]
    pub(super) fn access(&mut self, cpu: Cpu, vcpu: usize, access: Access) -> Option<u32> {
        let now_ns = self.now_ns;
        let topology = self.topology;
        let vm = self.vcpus[vcpu].vm as usize;
        let line = self.vms[vm].memory.line_mut(access.word);
        let here = match access.kind {
            raw::UNSPIN_LAB_LOAD => line.has_copy(cpu),
            _ => line.is_alone(cpu),
        };
        if here {
            self.vcpus[vcpu].debt_ns += u64::from(self.costs.line_hit_ns);
            return Some(self.perform(cpu, vcpu, access));
        }
        let hand_over_ns = match line.owner() {
            // Upgrading a shared copy costs as much as the answer of the nearest other copy; a cold line costs a
            // transfer within the cache.
            Some(owner) if owner == cpu => self.costs.line_cache_ns,
            Some(owner) => self.costs.line_ns(topology.distance(owner, cpu)),
            None => self.costs.line_cache_ns,
        };
        let begin_ns = line.busy_until_ns.max(now_ns);
        line.busy_until_ns = begin_ns + u64::from(hand_over_ns);
        let left_ns = line.busy_until_ns - now_ns;
        let known = &mut self.vcpus[vcpu];
        let left_ns = left_ns + std::mem::take(&mut known.debt_ns);
        known.base = Base::Access { left_ns, access };
        None
    }

    /// The line has arrived.
    #[inline]
    pub(super) fn access_done(&mut self, cpu: Cpu, vcpu: usize, access: Access) {
        let answer = self.perform(cpu, vcpu, access);
        self.ask(cpu, vcpu, answer);
    }

    /// Carries out the access now; returns the word's previous value.
    #[inline]
    fn perform(&mut self, cpu: Cpu, vcpu: usize, access: Access) -> u32 {
        let memory = self.memory_of_mut(vcpu);
        let before = memory.get(access.word);
        let after = match access.kind {
            raw::UNSPIN_LAB_LOAD => {
                memory.line_mut(access.word).share(cpu);
                return before;
            }
            raw::UNSPIN_LAB_STORE | raw::UNSPIN_LAB_EXCHANGE => access.first,
            raw::UNSPIN_LAB_FETCH_ADD => before.wrapping_add(access.first),
            raw::UNSPIN_LAB_FETCH_OR => before | access.first,
            raw::UNSPIN_LAB_FETCH_AND => before & access.first,
            _ if before == access.first => access.second,
            _ => before,
        };
        self.write(cpu, vcpu, access.word, after);
        before
    }

    /// A word of that vCPU's VM is written on that pCPU; the vCPUs that spin on it will see it.
    pub(super) fn write(&mut self, cpu: Cpu, vcpu: usize, word: Word, value: u32) {
        let memory = self.memory_of_mut(vcpu);
        let changed = memory.get(word) != value;
        memory.set(word, value);
        let line = memory.line_mut(word);
        line.own(cpu);
        if changed && !line.watchers.is_empty() {
            self.show(cpu, vcpu, word, value);
        }
    }

    /// The vCPUs that poll the line get their copies one by one, in the order in which they began to wait.
    fn show(&mut self, cpu: Cpu, vcpu: usize, word: Word, value: u32) {
        let vm = self.vcpus[vcpu].vm as usize;
        let mut ahead = 0u32;
        let count = self.vms[vm].memory.line(word).watchers.len();
        for place in 0..count {
            let watcher = &mut self.vms[vm].memory.line_mut(word).watchers[place];
            if !watcher.looks {
                continue;
            }
            if watcher.word == word && watcher.is_over(value) {
                watcher.looks = false;
                let watcher = watcher.vcpu as usize;
                self.will_see(cpu, watcher, ahead);
            }
            ahead += 1;
        }
    }

    /// A waiter's copy is under way from that pCPU, after that many others.
    fn will_see(&mut self, from: Cpu, watcher: usize, ahead: u32) {
        let Some(there) = self.cpu_of(self.vcpus[watcher].task) else {
            return;
        };
        let distance = self.topology.distance(from, there);
        let seen_in_ns = self.costs.line_ns(distance) + ahead * self.costs.line_waiter_ns;
        self.account(there);
        if let Base::Spin(spin) = &mut self.vcpus[watcher].base {
            spin.seen_in_ns = seen_in_ns.into();
        }
        self.plan(there);
    }
}
