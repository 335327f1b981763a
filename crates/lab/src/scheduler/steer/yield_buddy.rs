// SPDX-License-Identifier: MIT OR Apache-2.0
//! A directed yield as a yield buddy, as bpf/scheduler/yield/buddy.bpf.h carries it out.

use std::collections::BTreeSet;

use unspin_policy::{
    mechanics::{BuddyOutcome, BuddyPlaces, OrderPlace, OrderQueue, order_facts},
    steering::OrderFacts,
};

use super::{Key, Steer};
use crate::ids::{Cpu, Task};

/// A directed yield as a yield buddy (`policy/steering/yield_buddy.h`).
#[derive(Clone, Copy, Debug)]
pub(super) struct YieldBuddy {
    yielder: Task,
    candidate: Task,
    threshold_ns: u32,
    credit_ns: u32,
}

impl Steer {
    /// Facts about the task that runs there and another one in their queue.
    pub fn order(&mut self, now_ns: u64, cpu: Cpu, candidate: Task) -> OrderFacts {
        self.charge(now_ns, cpu);
        let Some(yielder) = self.cpus[cpu.index()].current else {
            return OrderFacts::UNKNOWN;
        };
        let other = &self.tasks[candidate.index()];
        let waiting = match other.home {
            None => self.shared.len(),
            Some(cpu) => self.own[cpu.index()].len(),
        };
        let queue = OrderQueue {
            clock_ns: self.clock(other.home).now_ns,
            waiting: waiting as u32,
            slice_ns: self.slice_ns,
        };
        let (yielder, candidate) = (self.order_place(yielder), self.order_place(candidate));
        // The yielder has been charged above.
        order_facts(yielder, 0, candidate, other.queued, queue)
    }

    fn order_place(&self, task: Task) -> OrderPlace {
        let entity = &self.tasks[task.index()];
        OrderPlace {
            vtime_ns: entity.vtime_ns,
            weight: self.flat_weight(task),
            // The shared queue's number is above those of all pCPUs' queues.
            queue: entity.home.map_or(self.topology.cpus(), |cpu| cpu.0),
            group: entity.group.0,
        }
    }

    /// The candidate begins its own slice there next, unless it is further than the threshold behind the task that
    /// would be next otherwise. Before that the virtual time of the running task is raised, and the candidate's
    /// lowered.
    pub fn yield_buddy(
        &mut self,
        cpu: Cpu,
        candidate: Task,
        threshold_ns: u32,
        raise_ns: u32,
        credit_ns: u32,
    ) -> bool {
        let Some(yielder) = self.cpus[cpu.index()].current else {
            return false;
        };
        let entity = &mut self.tasks[yielder.index()];
        entity.vtime_ns = entity.vtime_ns.wrapping_add(raise_ns.into());
        self.cpus[cpu.index()].yield_buddy = Some(YieldBuddy {
            yielder,
            candidate,
            threshold_ns,
            credit_ns,
        });
        true
    }

    /// The first of the tasks that wait for that pCPU, except the one to pass over.
    fn first_but(&self, cpu: Cpu, passed_over: Task) -> Option<Task> {
        let but = |queue: &BTreeSet<Key>| {
            let mut tasks = queue.iter().map(|key| Task(key.1));
            tasks.find(|task| *task != passed_over)
        };
        let heads = [but(&self.shared), but(&self.own[cpu.index()])];
        let heads = heads.into_iter().flatten();
        heads.min_by_key(|task| self.position_ns(*task) as i64)
    }

    /// The task that runs next after a yield as a yield buddy: the candidate, or the first that is not too far ahead of
    /// the yielder; `None`: the same as without the yield. `follow_yield_buddy()` of bpf/scheduler/yield/buddy.bpf.h.
    /// The yielder, if runnable, waits in its queue already.
    pub(super) fn follow_yield_buddy(&mut self, cpu: Cpu, yield_buddy: YieldBuddy) -> Option<Task> {
        let candidate = yield_buddy.candidate;
        let entity = &self.tasks[candidate.index()];
        if !entity.queued || !entity.allowed.contains(cpu) {
            return None;
        }
        let credited_ns = entity.vtime_ns.wrapping_sub(yield_buddy.credit_ns.into());
        self.requeue_at(candidate, credited_ns);
        let others = self.first_but(cpu, yield_buddy.yielder);
        let candidate_ns = self.position_ns(candidate);
        let yielder_runnable = self.tasks[yield_buddy.yielder.index()].queued;
        let places = BuddyPlaces {
            candidate_ns,
            waiting_ns: others.map_or(candidate_ns, |task| self.position_ns(task)),
            yielder_ns: yielder_runnable.then(|| self.position_ns(yield_buddy.yielder)),
            threshold_ns: yield_buddy.threshold_ns,
        };
        match places.outcome() {
            BuddyOutcome::Runs => Some(candidate),
            BuddyOutcome::OthersRun => others,
            BuddyOutcome::IsTooUnfair => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use unspin_policy::steering::{UNSPIN_NO, UNSPIN_YES};

    use super::*;
    use crate::{
        ids::Group,
        scheduler::{Allowed, Enqueue, HostScheduler, NICE_0_WEIGHT},
        topology::Topology,
    };

    const CPU: Cpu = Cpu(0);
    const MS: u64 = 1_000_000;

    /// One pCPU; the first task runs and the others wait, each in its own group if `apart`.
    fn one_cpu(tasks: u32, apart: bool) -> Steer {
        let mut steer = Steer::new(Topology::new(1, 1, 1, 1).expect("one pCPU"), 3 * MS);
        for _ in 0..tasks {
            let group = match apart {
                true => steer.add_group(Group(0), NICE_0_WEIGHT),
                false => Group(0),
            };
            let task = steer.add_task(group, NICE_0_WEIGHT, Allowed::All, None);
            steer.enqueue(0, task, CPU, Enqueue::New);
        }
        assert_eq!(steer.pick_next(0, CPU), Some(Task(0)));
        steer
    }

    /// The task that runs after a yield as a yield buddy at that time.
    fn after(steer: &mut Steer, now_ns: u64) -> Option<Task> {
        steer.put_previous(now_ns, CPU, true);
        steer.pick_next(now_ns, CPU)
    }

    /// Task 1 has run 3 ms, task 0 about 0.1 ms of its second slice: in one group they are 2.9 ms apart.
    fn spinner_has_run_less() -> (Steer, u64) {
        let mut steer = one_cpu(2, false);
        assert_eq!(after(&mut steer, MS / 10), Some(Task(1)));
        let now_ns = 3 * MS;
        assert_eq!(after(&mut steer, now_ns), Some(Task(0)));
        (steer, now_ns)
    }

    #[test]
    fn facts_say_where_both_stand_with_what_was_run_since() {
        let (mut steer, then_ns) = spinner_has_run_less();
        let before = steer.order(then_ns, CPU, Task(1));
        let now = steer.order(then_ns + MS / 2, CPU, Task(1));
        // Two tasks of nice 0 at the root: virtual time equals CPU time.
        assert_eq!(now.self_vtime - before.self_vtime, MS / 2);
        assert_eq!(before.candidate_vtime - before.self_vtime, 2_800_000);
        assert_eq!((now.same_queue, now.same_group), (UNSPIN_YES, UNSPIN_YES));
        assert_eq!((now.runnable, now.limit_vtime), (2, 10 * MS));
        let mut apart = one_cpu(2, true);
        let order = apart.order(0, CPU, Task(1));
        assert_eq!(
            (order.same_queue, order.same_group),
            (UNSPIN_YES, UNSPIN_NO)
        );
    }

    #[test]
    fn a_yield_buddy_runs_unless_it_is_too_unfair() {
        // 2.8 ms ahead of a spinner that ran 0.1 ms more.
        for (threshold_ns, next) in [(2_600_000, Task(0)), (2_700_000, Task(1))] {
            let (mut steer, now_ns) = spinner_has_run_less();
            assert!(steer.yield_buddy(CPU, Task(1), threshold_ns, 0, 0));
            assert_eq!(
                after(&mut steer, now_ns + MS / 10),
                Some(next),
                "{threshold_ns}"
            );
        }
    }

    #[test]
    fn who_is_raised_or_whose_candidate_is_credited_is_not_next() {
        for (raise_ns, credit_ns) in [(2_700_000, 0), (0, 2_700_000)] {
            let (mut steer, now_ns) = spinner_has_run_less();
            assert!(steer.yield_buddy(CPU, Task(1), 0, raise_ns, credit_ns));
            assert_eq!(after(&mut steer, now_ns + MS / 10), Some(Task(1)));
            let order = steer.order(now_ns + MS / 10, CPU, Task(0));
            assert_eq!(order.candidate_vtime, order.self_vtime, "it stays so");
        }
    }

    #[test]
    fn a_third_who_is_near_runs_instead_of_the_spinner() {
        let mut steer = one_cpu(3, false);
        assert_eq!(after(&mut steer, MS), Some(Task(1)));
        assert_eq!(after(&mut steer, 4 * MS), Some(Task(2)));
        assert_eq!(after(&mut steer, 6 * MS), Some(Task(0)));
        // Task 0 has run 1 ms, task 2 2 ms and the candidate 3 ms.
        assert!(steer.yield_buddy(CPU, Task(1), 1_500_000, 0, 0));
        assert_eq!(after(&mut steer, 6 * MS), Some(Task(2)));
    }

    #[test]
    fn a_yield_buddy_pays_for_its_own_slice() {
        let mut steer = one_cpu(2, false);
        assert!(steer.yield_buddy(CPU, Task(1), u32::MAX, 0, 0));
        assert_eq!(after(&mut steer, MS), Some(Task(1)));
        assert_eq!(steer.borrower_on(CPU), None);
        assert_eq!(steer.slice_left_ns(MS, CPU), 3 * MS);
        steer.put_previous(2 * MS, CPU, true);
        assert_eq!(steer.charged_ns(Task(0)), MS);
        assert_eq!(steer.charged_ns(Task(1)), MS);
    }
}
