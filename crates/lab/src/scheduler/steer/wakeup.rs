// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that sleep and wake up: the caller of `policy/mechanics/wakeup.h`, as bpf/scheduler/queues.bpf.h is.

use unspin_policy::mechanics::{
    expected_burst_ns, is_protected, lag_ns, mean_burst_ns, wakeup_preempts,
};

use super::Steer;
use crate::ids::{Cpu, Task};

impl Steer {
    /// The task, already charged, goes to sleep: `note_sleep()`.
    pub(super) fn note_sleep(&mut self, task: Task) {
        let clock_ns = self.clock(self.tasks[task.index()].home).now_ns;
        let slice_ns = self.slice_ns;
        let entity = &mut self.tasks[task.index()];
        entity.burst_ns = expected_burst_ns(entity.burst_ns, entity.awake_ns, slice_ns);
        entity.mean_ns = mean_burst_ns(entity.mean_ns, entity.awake_ns, slice_ns);
        entity.awake_ns = 0;
        entity.lag_ns = lag_ns(entity.vtime_ns, clock_ns);
    }

    /// Whether a task that was enqueued for that pCPU when it woke up runs there at once. If not, but it would on the
    /// pCPU where it ran last, or on the next one, that is kicked; in the kernel the third pCPU is chosen at random.
    pub(super) fn preempts(&mut self, now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        // A task that is not first in the queue waits too.
        if self.head(cpu) != Some(woken) {
            return false;
        }
        if self.preempts_there(now_ns, cpu, woken) {
            return true;
        }
        let next = Cpu((cpu.0 + 1) % self.topology.cpus());
        let others = [self.tasks[woken.index()].last_cpu, Some(next)];
        let mut others = others
            .into_iter()
            .flatten()
            .filter(|other| *other != cpu && self.tasks[woken.index()].allowed.contains(*other));
        self.kick = others.find(|other| self.preempts_there(now_ns, *other, woken));
        false
    }

    /// `preempts()`
    fn preempts_there(&self, now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        let here = &self.cpus[cpu.index()];
        // A task that runs at another's charge or on a grant, or is about to lend, does not run for long.
        let runner = here.current.filter(|current| here.slice == Some(*current));
        let Some(runner) = runner.filter(|_| here.borrower.is_none() && !here.granted) else {
            return false;
        };
        let ran_ns = now_ns.saturating_sub(here.since_ns);
        if is_protected(self.tasks[runner.index()].vcpu, ran_ns) {
            return false;
        }
        let come_ns = self.flat_weight(runner).weighted_ns(ran_ns);
        let runner_ns = self.position_ns(runner).wrapping_add(come_ns);
        wakeup_preempts(
            self.position_ns(woken),
            self.flat_weight(woken),
            self.tasks[woken.index()].burst_ns,
            runner_ns,
        )
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

    const MS: u64 = 1_000_000;
    const SLICE_NS: u64 = 3 * MS;

    /// That many pCPUs, and that many tasks of nice 0 that have not been enqueued.
    fn tasks(cpus: u32, count: u32) -> Steer {
        let mut steer = Steer::new(Topology::new(1, 1, cpus, 1).expect("pCPUs"), SLICE_NS);
        for _ in 0..count {
            steer.add_task(Group(0), NICE_0_WEIGHT, Allowed::All, None);
        }
        steer
    }

    /// On pCPU 0: task 0 has run 0.1 ms and sleeps, tasks 1 and 2 run for 20 ms.
    fn one_sleeps_beside_two(cpus: u32) -> Steer {
        let mut steer = tasks(cpus, 3);
        steer.enqueue(0, Task(0), Cpu(0), Enqueue::New);
        assert_eq!(steer.pick_next(0, Cpu(0)), Some(Task(0)));
        steer.put_previous(MS / 10, Cpu(0), false);
        for task in [1, 2] {
            steer.enqueue(MS / 10, Task(task), Cpu(0), Enqueue::New);
        }
        for slice in 0..7 {
            let now_ns = MS / 10 + slice * SLICE_NS;
            assert!(steer.pick_next(now_ns, Cpu(0)).is_some());
            steer.put_previous(now_ns + SLICE_NS, Cpu(0), true);
        }
        assert!(steer.pick_next(22 * MS, Cpu(0)).is_some());
        // It has run for 0.1 ms repeatedly.
        steer.tasks[0].burst_ns = MS / 10;
        steer
    }

    #[test]
    fn one_whose_runs_are_short_runs_at_once() {
        let mut steer = one_sleeps_beside_two(1);
        steer.enqueue(23 * MS, Task(0), Cpu(0), Enqueue::Wakeup);
        assert!(steer.wakeup_preempts(23 * MS, Cpu(0), Task(0)));
        steer.put_previous(23 * MS, Cpu(0), true);
        assert_eq!(steer.pick_next(23 * MS, Cpu(0)), Some(Task(0)));
    }

    /// The runner, no vCPU, began at 22 ms.
    #[test]
    fn nobody_is_preempted_who_has_run_for_less_than_a_tenth_of_a_millisecond() {
        let mut steer = one_sleeps_beside_two(1);
        steer.enqueue(22 * MS, Task(0), Cpu(0), Enqueue::Wakeup);
        assert!(!steer.wakeup_preempts(22 * MS + 99_999, Cpu(0), Task(0)));
        assert!(steer.wakeup_preempts(22 * MS + 100_000, Cpu(0), Task(0)));
    }

    #[test]
    fn one_that_computes_waits_for_the_end_of_a_slice() {
        let mut steer = one_sleeps_beside_two(1);
        steer.tasks[0].burst_ns = SLICE_NS;
        steer.enqueue(23 * MS, Task(0), Cpu(0), Enqueue::Wakeup);
        assert!(!steer.wakeup_preempts(23 * MS, Cpu(0), Task(0)));
    }

    /// A grant is for a critical section: it is not preempted.
    #[test]
    fn it_does_not_take_a_grant_away() {
        let mut steer = one_sleeps_beside_two(1);
        steer.grant(22 * MS, Cpu(0), MS);
        steer.enqueue(22 * MS + 1, Task(0), Cpu(0), Enqueue::Wakeup);
        assert!(!steer.wakeup_preempts(22 * MS + 1, Cpu(0), Task(0)));
    }

    /// It was enqueued for pCPU 1, where a task runs that has slept long too.
    #[test]
    fn it_runs_where_it_ran_last_if_not_where_it_was_enqueued() {
        let mut steer = one_sleeps_beside_two(2);
        let other = steer.add_task(Group(0), NICE_0_WEIGHT, Allowed::All, None);
        steer.tasks[other.index()].burst_ns = 0;
        steer.enqueue(23 * MS, other, Cpu(1), Enqueue::Wakeup);
        assert_eq!(steer.pick_next(23 * MS, Cpu(1)), Some(other));
        steer.enqueue(23 * MS, Task(0), Cpu(1), Enqueue::Wakeup);
        assert!(!steer.wakeup_preempts(23 * MS, Cpu(1), Task(0)));
        assert_eq!(steer.take_kick(), Some(Cpu(0)));
        assert_eq!(steer.take_kick(), None);
    }

    /// On time if another task waits, whenever it came.
    #[test]
    fn a_slice_has_a_timer_while_another_task_waits() {
        let mut steer = tasks(1, 2);
        steer.enqueue(0, Task(0), Cpu(0), Enqueue::New);
        assert_eq!(steer.pick_next(0, Cpu(0)), Some(Task(0)));
        assert_eq!(steer.timer_ns(Cpu(0)), None);
        steer.enqueue(MS, Task(1), Cpu(0), Enqueue::New);
        assert_eq!(steer.timer_ns(Cpu(0)), Some(SLICE_NS));
        assert!(!steer.tick(2 * MS, Cpu(0)));
        assert!(steer.tick(SLICE_NS, Cpu(0)));
    }
}
