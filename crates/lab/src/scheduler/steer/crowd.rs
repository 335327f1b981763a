// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks with short runs that wait in a crowd: the caller of `policy/mechanics/crowd.h`, as bpf/scheduler/crowd.bpf.h is.

use unspin_policy::mechanics::{CROWD, before, is_short};

use super::Steer;
use crate::ids::{Cpu, Task};

/// UNSPIN_NOTES_MAX
const NOTES_MAX: usize = 32;

/// A task with short runs that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// What its pCPU has served when it goes first, weighted ns.
    due_ns: u64,
    task: Task,
}

impl Steer {
    /// A task that wakes up waits: `note_share()`.
    pub(super) fn note_share(&mut self, task: Task, cpu: Cpu) {
        let entity = &self.tasks[task.index()];
        let slice_ns = self.slice_ns;
        if !is_short(entity.burst_ns, slice_ns) || self.notes[cpu.index()].len() >= NOTES_MAX {
            return;
        }
        let waiting =
            self.own[cpu.index()].len() + self.shared.len() / self.topology.cpus() as usize;
        let waiting = waiting as u64;
        if waiting < CROWD {
            return;
        }
        let clock = self.clock(entity.home);
        let queue_ns = clock.now_ns.wrapping_add(clock.offset_ns);
        let position_ns = self.position_ns(task);
        let here = &mut self.cpus[cpu.index()];
        here.fair
            .advance(here.served_ns, waiting, queue_ns, slice_ns);
        let due_ns = here.fair.due_ns(waiting, position_ns);
        self.notes[cpu.index()].push(Note { due_ns, task });
    }

    /// The task that goes first on this pCPU since its share has come so far: `serve_shares()`.
    pub(super) fn serve_share(&mut self, cpu: Cpu) -> Option<Task> {
        let served_ns = self.cpus[cpu.index()].served_ns;
        loop {
            let notes = &mut self.notes[cpu.index()];
            let mut first = 0;
            for (at, note) in notes.iter().enumerate() {
                if before(note.due_ns, notes[first].due_ns) {
                    first = at;
                }
            }
            if before(served_ns, notes.get(first)?.due_ns) {
                return None;
            }
            let task = notes.swap_remove(first).task;
            let entity = &self.tasks[task.index()];
            if entity.queued && entity.allowed.contains(cpu) {
                return Some(task);
            }
        }
    }
}
