// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks with short runs that wait in a crowd: the caller of `policy/mechanics/crowd.h`, as bpf/scheduler/waits/crowd.bpf.h is.

use unspin_policy::mechanics::{CROWD_NOTES, FairClock, before, crowd, crowd_is_due, is_short};

use super::Steer;
use crate::ids::{Cpu, Task};

/// A task with short runs that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    position_ns: u64,
    task: Task,
}

/// What a pCPU keeps of those that wait for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Virtual time that tasks had there, and how far a fair share of that has come.
    pub(super) served_ns: u64,
    fair: FairClock,
    /// When they were counted, if ever, and how many they were, if a crowd.
    counted_ns: Option<u64>,
    waiting: Option<u64>,
}

impl Steer {
    /// A task that wakes up waits: `note_share()`.
    pub(super) fn note_share(&mut self, task: Task, cpu: Cpu) {
        let short = is_short(self.tasks[task.index()].burst_ns, self.slice_ns);
        let position_ns = self.position_ns(task);
        let notes = &mut self.notes[cpu.index()];
        if short && notes.len() < CROWD_NOTES {
            notes.push(Note { position_ns, task });
        }
    }

    /// How many wait for that pCPU if they are a crowd; if not, nothing that was noted matters: `is_crowded()`.
    fn crowd(&mut self, now_ns: u64, cpu: Cpu) -> Option<u64> {
        let known = &mut self.cpus[cpu.index()].crowd;
        if known
            .counted_ns
            .is_none_or(|at_ns| crowd_is_due(at_ns, now_ns))
        {
            known.counted_ns = Some(now_ns);
            let own = self.own[cpu.index()].len();
            known.waiting = crowd(own, self.shared.len(), self.topology.cpus());
            if known.waiting.is_none() {
                self.notes[cpu.index()].clear();
            }
        }
        known.waiting
    }

    /// The task that goes first on this pCPU since its share has come so far: `serve_shares()`.
    pub(super) fn serve_share(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        if self.notes[cpu.index()].is_empty() {
            return None;
        }
        let waiting = self.crowd(now_ns, cpu)?;
        let crowd = &mut self.cpus[cpu.index()].crowd;
        let clock_ns = self.shared_clock.now_ns;
        crowd
            .fair
            .advance(crowd.served_ns, waiting, clock_ns, self.slice_ns);
        let fair = crowd.fair;
        loop {
            let notes = &mut self.notes[cpu.index()];
            let mut first = 0;
            for (at, note) in notes.iter().enumerate() {
                if before(note.position_ns, notes[first].position_ns) {
                    first = at;
                }
            }
            if !fair.is_due(notes.get(first)?.position_ns) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::Group,
        scheduler::{Allowed, Enqueue, HostScheduler, NICE_0_WEIGHT},
        topology::Topology,
    };

    const US: u64 = 1_000;
    const MS: u64 = 1_000 * US;
    const MEMBERS: u32 = 200;
    const CPU: Cpu = Cpu(0);

    /// On one pCPU: task 0 has run for 20 us each time, the others for a millisecond each; all wake up together. How long it waits
    /// for each of its first runs, ns.
    fn waits(burst_ns: u64) -> Vec<u64> {
        let mut steer = Steer::new(Topology::new(1, 1, 1, 1).expect("a pCPU"), 3 * MS);
        for task in 0..=MEMBERS {
            steer.add_task(Group(0), NICE_0_WEIGHT, Allowed::All, None);
            steer.tasks[task as usize].burst_ns = if task == 0 { burst_ns } else { MS };
        }
        for task in 1..=MEMBERS {
            steer.enqueue(0, Task(task), CPU, Enqueue::Wakeup);
        }
        // It has had what its runs are shorter than a slice.
        steer.tasks[0].vtime_ns = MS;
        steer.enqueue(0, Task(0), CPU, Enqueue::Wakeup);
        let (mut now_ns, mut since_ns, mut waits) = (0, 0, Vec::new());
        while now_ns < u64::from(MEMBERS) * MS {
            let Some(task) = steer.pick_next(now_ns, CPU) else {
                break;
            };
            if task == Task(0) {
                waits.push(now_ns - since_ns);
                now_ns += 20 * US;
                since_ns = now_ns;
                steer.put_previous(now_ns, CPU, false);
                steer.enqueue(now_ns, task, CPU, Enqueue::Wakeup);
            } else {
                now_ns += MS;
                steer.put_previous(now_ns, CPU, false);
            }
        }
        waits
    }

    /// 20 us of 201 tasks: every 4 ms, after what it is ahead at first.
    #[test]
    fn it_has_its_share_in_parts() {
        let waits = waits(20 * US);
        assert!(waits.len() > 10, "{waits:?}");
        let longest = waits.iter().skip(1).max();
        assert!(longest.is_some_and(|wait| *wait < 10 * MS), "{waits:?}");
    }

    #[test]
    fn one_with_longer_runs_waits_for_all() {
        assert_eq!(waits(MS).len(), 0);
    }
}
