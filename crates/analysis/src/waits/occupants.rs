// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who ran on which CPU, as far as the events of vCPUs tell: what follows a task that is no vCPU stays unseen until a vCPU
//! comes.

use std::collections::BTreeMap;

use unspin_events::{Event, What};

/// Who has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Occupant {
    /// A vCPU.
    Vcpu {
        /// Its VM.
        vm: u32,
        /// Its number.
        vcpu: u16,
    },
    /// Another task, by thread id.
    Task(u32),
    /// Nobody: the idle task.
    Idle,
}

/// The occupants of all CPUs over time.
#[derive(Clone, Debug, Default)]
pub struct Occupants {
    cpus: BTreeMap<u16, Vec<(u64, Occupant)>>,
}

impl Occupants {
    /// Takes the next event of any VM.
    pub fn follow(&mut self, event: &Event) {
        let occupant = match (event.what, event.vm, event.vcpu) {
            (What::SwitchIn { .. }, Some(vm), Some(vcpu)) => Occupant::Vcpu { vm, vcpu },
            (What::SwitchOut { next_thread: 0, .. }, ..) => Occupant::Idle,
            (What::SwitchOut { next_thread, .. }, ..) => Occupant::Task(next_thread),
            _ => return,
        };
        let cpu = self.cpus.entry(event.cpu).or_default();
        match cpu.last_mut() {
            // One switch: the vCPU that leaves and the one that comes tell of it, in either order.
            Some((at_ns, last)) if *at_ns == event.time_ns => {
                if !matches!(last, Occupant::Vcpu { .. }) {
                    *last = occupant;
                }
            }
            _ => cpu.push((event.time_ns, occupant)),
        }
    }

    /// The pieces of [begin_ns, end_ns) and who had the CPU; `None` before anything is known of it.
    pub fn between(
        &self,
        cpu: u16,
        begin_ns: u64,
        end_ns: u64,
    ) -> impl Iterator<Item = (u64, Option<Occupant>)> + '_ {
        let changes = self.cpus.get(&cpu).map_or(&[][..], |changes| changes);
        let first = changes.partition_point(|&(at_ns, _)| at_ns <= begin_ns);
        let before = first.checked_sub(1).map(|last| changes[last].1);
        let within = changes[first..]
            .iter()
            .take_while(move |(at_ns, _)| *at_ns < end_ns)
            .map(|&(at_ns, occupant)| (at_ns, Some(occupant)));
        let starts: Vec<(u64, Option<Occupant>)> =
            std::iter::once((begin_ns, before)).chain(within).collect();
        let ends: Vec<u64> = starts[1..]
            .iter()
            .map(|&(at_ns, _)| at_ns)
            .chain([end_ns])
            .collect();
        starts
            .into_iter()
            .zip(ends)
            .map(|((at_ns, occupant), until_ns)| (until_ns - at_ns, occupant))
    }
}
