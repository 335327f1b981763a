// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks with short runs that wait in a crowd: the caller of `policy/mechanics/crowd.h`, as bpf/scheduler/waits/crowd.bpf.h is.

use unspin_policy::mechanics::{
    FairClock, before, crowd_clock_ns, crowd_is_due, crowd_is_over, fair_share_ns, is_crowd,
    is_short, note_slot,
};

use super::Steer;
use crate::ids::{Cpu, Task};

/// A task with short runs that waited when it was noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    position_ns: u64,
    task: Task,
}

/// Those of a pCPU, in no order, and how many were written so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    notes: Vec<Note>,
    written: u32,
}

impl Notes {
    fn write(&mut self, note: Note) {
        let slot = note_slot(self.notes.len() as u32, self.written) as usize;
        self.written = self.written.wrapping_add(1);
        if slot == self.notes.len() {
            self.notes.push(note);
        } else {
            self.notes[slot] = note;
        }
    }

    /// That of the task that is least far, if a fair share has come there: `take_note()`.
    fn take(&mut self, fair: FairClock) -> Option<Task> {
        let mut first = 0;
        for (at, note) in self.notes.iter().enumerate() {
            if before(note.position_ns, self.notes[first].position_ns) {
                first = at;
            }
        }
        fair.is_due(self.notes.get(first)?.position_ns)
            .then(|| self.notes.swap_remove(first).task)
    }
}

/// What a pCPU keeps of those that wait for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// The time for which tasks ran there, and what of it the fair clock has gone on by.
    pub(super) ran_ns: u64,
    shared_ran_ns: u64,
    /// When those who wait were counted, if ever, and whether they were a crowd.
    counted_ns: Option<u64>,
    waits: bool,
}

impl Steer {
    /// The task waits: `note_share()`.
    pub(super) fn note_share(&mut self, task: Task, cpu: Cpu) {
        let short = is_short(self.tasks[task.index()].mean_ns, self.slice_ns);
        let position_ns = self.position_ns(task);
        if short {
            self.notes[cpu.index()].write(Note { position_ns, task });
        }
    }

    /// The clock by which a task is placed in that queue that wakes up or is new; `clock_ns`: the queue's: `crowd_clock()`.
    pub(super) fn crowd_clock_ns(&self, queue: Option<Cpu>, clock_ns: u64) -> u64 {
        let offset_ns = self.clock(queue).offset_ns;
        let fair_ns = self.fair.at_ns.wrapping_sub(offset_ns);
        crowd_clock_ns(clock_ns, fair_ns, self.slice_ns)
    }

    /// Counts those who wait for that pCPU if they were counted a period ago: `count_crowd()`.
    fn count_crowd(&mut self, now_ns: u64, cpu: Cpu) {
        let known = &mut self.cpus[cpu.index()].crowd;
        if known
            .counted_ns
            .is_some_and(|at_ns| !crowd_is_due(at_ns, now_ns))
        {
            return;
        }
        known.counted_ns = Some(now_ns);
        let own = self.own[cpu.index()].len();
        known.waits = is_crowd(own, self.shared.len(), self.topology.cpus());
        if known.waits {
            self.crowd_ns = now_ns;
        } else if crowd_is_over(self.crowd_ns, now_ns) {
            self.fair.at_ns = self.shared_clock.now_ns;
        }
    }

    /// The fair clock goes on by what that pCPU has run, if a crowd waits there: `advance_fair_clock()`.
    fn advance_fair_clock(&mut self, cpu: Cpu) {
        let known = &mut self.cpus[cpu.index()].crowd;
        let ran_ns = known.ran_ns - known.shared_ran_ns;
        known.shared_ran_ns = known.ran_ns;
        if known.waits {
            let share_ns = fair_share_ns(ran_ns, self.groups[0].active.sum(), self.topology.cpus());
            self.fair
                .advance(share_ns, self.shared_clock.now_ns, self.slice_ns);
        }
    }

    /// The task that goes first on this pCPU since its share has come so far: `serve_shares()`.
    pub(super) fn serve_share(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        self.count_crowd(now_ns, cpu);
        self.advance_fair_clock(cpu);
        if !self.cpus[cpu.index()].crowd.waits {
            return None;
        }
        let fair = self.fair;
        while let Some(task) = self.notes[cpu.index()].take(fair) {
            let entity = &self.tasks[task.index()];
            let waits = entity.queued && entity.allowed.contains(cpu);
            if waits && fair.is_due(self.position_ns(task)) {
                return Some(task);
            }
        }
        None
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

    fn one_cpu(burst_ns: u64) -> Steer {
        cpus(1, burst_ns)
    }

    /// Task 0 has runs of `burst_ns`, MEMBERS others for each pCPU of a millisecond.
    fn cpus(cpus: u32, burst_ns: u64) -> Steer {
        let topology = Topology::new(1, 1, cpus, 1).expect("pCPUs");
        let mut steer = Steer::new(topology, 3 * MS);
        for task in 0..=cpus * MEMBERS {
            steer.add_task(Group(0), NICE_0_WEIGHT, Allowed::All, None);
            let burst_ns = if task == 0 { burst_ns } else { MS };
            let entity = &mut steer.tasks[task as usize];
            (entity.burst_ns, entity.mean_ns) = (burst_ns, burst_ns);
        }
        // It has had what its runs are shorter than a slice.
        steer.tasks[0].vtime_ns = MS;
        steer
    }

    fn wake(steer: &mut Steer, now_ns: u64, tasks: impl IntoIterator<Item = u32>) {
        for task in tasks {
            steer.enqueue(now_ns, Task(task), CPU, Enqueue::Wakeup);
        }
    }

    /// Task 0 runs for 20 us and wakes up at once, others run for a millisecond: how long it waits for each of its first runs, ns.
    fn waits(steer: &mut Steer, since_ns: u64) -> Vec<u64> {
        let (mut now_ns, mut since_ns, mut waits) = (since_ns, since_ns, Vec::new());
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

    fn waits_in_a_crowd(burst_ns: u64) -> Vec<u64> {
        let mut steer = one_cpu(burst_ns);
        wake(&mut steer, 0, 1..=MEMBERS);
        wake(&mut steer, 0, [0]);
        waits(&mut steer, 0)
    }

    /// 20 us of 201 tasks: every 4 ms, after what it is ahead at first.
    #[test]
    fn it_has_its_share_in_parts() {
        let waits = waits_in_a_crowd(20 * US);
        assert!(waits.len() > 10, "{waits:?}");
        let longest = waits.iter().skip(1).max();
        assert!(longest.is_some_and(|wait| *wait < 10 * MS), "{waits:?}");
    }

    #[test]
    fn one_with_longer_runs_waits_for_all() {
        assert_eq!(waits_in_a_crowd(MS).len(), 0);
    }
    /// 20 us again and again, then once 1 ms, as when interrupts fall into a run.
    #[test]
    fn one_long_run_among_short_ones_leaves_it_its_share() {
        let mut steer = one_cpu(20 * US);
        steer.tasks[0].awake_ns = MS;
        steer.note_sleep(Task(0));
        steer.tasks[0].vtime_ns = 100 * US;
        wake(&mut steer, 0, 1..=MEMBERS);
        wake(&mut steer, 0, [0]);
        let waits = waits(&mut steer, 0);
        assert!(waits.iter().all(|wait| *wait <= 21 * MS), "{waits:?}");
        assert!(waits.len() > 10, "{waits:?}");
    }
    #[test]
    fn one_that_is_preempted_in_a_short_run_has_its_share_too() {
        let mut steer = one_cpu(20 * US);
        steer.tasks[0].vtime_ns = 80 * US;
        wake(&mut steer, 0, [0]);
        assert_eq!(steer.pick_next(0, CPU), Some(Task(0)));
        wake(&mut steer, 0, 1..=MEMBERS);
        steer.put_previous(20 * US, CPU, true);
        let waits = waits(&mut steer, 20 * US);
        assert!(waits.iter().all(|wait| *wait <= 21 * MS), "{waits:?}");
        assert!(waits.len() > 10, "{waits:?}");
    }
    /// Each comes with what its run is shorter than a slice, by a clock that would stand while they come.
    #[test]
    fn those_who_wake_up_one_after_another_do_not_keep_hogs_from_running() {
        let mut steer = one_cpu(MS);
        let (mut now_ns, mut next, mut hogs_ns) = (0, 31, 0);
        wake(&mut steer, 0, 1..=30);
        while now_ns < 300 * MS {
            wake(&mut steer, now_ns, [next]);
            while let Some(Task(task)) = steer.pick_next(now_ns, CPU) {
                let (is_hog, ran_ns) = (task <= 30, if task <= 30 { 3 * MS } else { 3 * MS / 2 });
                now_ns += ran_ns;
                steer.put_previous(now_ns, CPU, is_hog);
                if !is_hog {
                    break;
                }
                hogs_ns += ran_ns;
            }
            next = (next - 30) % (MEMBERS - 31) + 31;
        }
        assert!(hogs_ns > 150 * MS, "{hogs_ns} of {now_ns}");
    }
    #[test]
    fn the_fair_clock_is_its_queues_once_the_crowd_is_gone() {
        let mut steer = one_cpu(20 * US);
        (steer.fair.at_ns, steer.crowd_ns) = (5 * MS, 9 * MS);
        wake(&mut steer, 10 * MS, [1]);
        steer.count_crowd(10 * MS, CPU);
        assert_eq!(steer.fair.at_ns, 5 * MS, "another CPU may have one");
        steer.count_crowd(12 * MS, CPU);
        assert_eq!(steer.fair.at_ns, steer.shared_clock.now_ns);
    }
    /// Members of the crowd are still being woken when tasks are counted: it is noted before that.
    #[test]
    fn one_that_wakes_up_before_the_crowd_has_its_share_too() {
        let mut steer = one_cpu(20 * US);
        steer.tasks[0].vtime_ns = 100 * US;
        wake(&mut steer, 0, [1, 2, 0]);
        assert_eq!(steer.pick_next(0, CPU), Some(Task(1)));
        steer.put_previous(MS, CPU, false);
        wake(&mut steer, MS, 3..=MEMBERS);
        let waits = waits(&mut steer, MS);
        // 100 us of 201 tasks, and one that runs meanwhile.
        assert!(waits.iter().all(|wait| *wait <= 21 * MS), "{waits:?}");
        assert!(waits.len() > 32, "{waits:?}");
    }
    /// Notes of runs before the crowd give it nothing.
    #[test]
    fn one_that_was_noted_often_has_its_share_only() {
        let mut steer = one_cpu(20 * US);
        for time in 0..40 {
            let now_ns = time * 20 * US;
            wake(&mut steer, now_ns, [0]);
            assert_eq!(steer.pick_next(now_ns, CPU), Some(Task(0)));
            steer.put_previous(now_ns + 20 * US, CPU, false);
        }
        wake(&mut steer, MS, 0..=MEMBERS);
        let waits = waits(&mut steer, MS);
        // 20 us of the 200 tasks at first, of 130 then.
        assert!(waits.len() > 32, "{waits:?}");
        assert!(waits[..32].iter().all(|wait| *wait >= 2 * MS), "{waits:?}");
    }
    /// Both have served a part of the crowd, but the task has waited for the first alone.
    #[test]
    fn its_share_has_come_as_far_on_a_cpu_where_it_has_not_been() {
        let mut steer = cpus(2, 20 * US);
        steer.shared_clock.now_ns = 50 * MS;
        steer.tasks[0].vtime_ns = 50 * MS + 100 * US;
        wake(&mut steer, 0, 0..=2 * MEMBERS);
        // When it ran, and when it woke up on the second.
        let (mut runs, mut moved_ns) = (0, None);
        for now_ns in (0..u64::from(MEMBERS) * MS).step_by(MS as usize) {
            if steer.pick_next(now_ns, Cpu(1)) == Some(Task(0)) {
                let waited_ns = now_ns - moved_ns.expect("it has been there");
                // 20 us of those who wait, for each of the two.
                assert!(waited_ns <= 5 * MS, "{waited_ns}");
                assert!(runs > 10, "{runs}");
                return;
            }
            steer.put_previous(now_ns + MS, Cpu(1), false);
            if steer.pick_next(now_ns, CPU) == Some(Task(0)) {
                runs += 1;
                let late = now_ns > 60 * MS;
                moved_ns = late.then_some(now_ns);
                steer.put_previous(now_ns + 20 * US, CPU, false);
                let cpu = if late { Cpu(1) } else { CPU };
                steer.enqueue(now_ns + 20 * US, Task(0), cpu, Enqueue::Wakeup);
                steer.pick_next(now_ns + 20 * US, CPU);
            }
            steer.put_previous(now_ns + MS, CPU, false);
        }
        panic!("it waited for all, after {runs} runs");
    }
}
