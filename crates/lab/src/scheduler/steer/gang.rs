// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls for gangs (`policy/steering/gang.h`) by the rules of `policy/mechanics/gang.h`, as bpf/scheduler/yield/gang.bpf.h
//! carries them out.

use unspin_policy::mechanics::{BuddyOutcome, BuddyPlaces, GangPlace, called_until_ns, is_called};

use super::Steer;
use crate::ids::{Cpu, Task};

/// The task that is called to a pCPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    task: Task,
    threshold_ns: u32,
    until_ns: u64,
}

impl Steer {
    /// Whether a task's own slice has begun there just now.
    pub fn slice_begins_now(&self, now_ns: u64, cpu: Cpu) -> bool {
        let here = &self.cpus[cpu.index()];
        here.current.is_some() && here.current == here.slice && here.began_ns == now_ns
    }

    /// The first pCPU from that number on where a slice may be cut for that VM: `find_cut()`. `vm_of`: a task's VM, if
    /// it has one.
    pub fn find_cut(
        &self,
        now_ns: u64,
        from: u32,
        vm: u32,
        vm_of: impl Fn(Task) -> Option<u32>,
    ) -> Option<Cpu> {
        (from..self.topology.cpus()).map(Cpu).find(|cpu| {
            let here = &self.cpus[cpu.index()];
            let runs = GangPlace::new(
                here.current.and_then(&vm_of),
                here.lender.is_some(),
                here.began_ns,
            );
            runs.may_cut(here.call.is_some(), vm, now_ns)
        })
    }

    /// Whether a task waits, may run there, and has not been called elsewhere.
    pub fn may_be_called(&self, now_ns: u64, task: Task, cpu: Cpu) -> bool {
        let entity = &self.tasks[task.index()];
        entity.queued && !is_called(entity.called_until_ns, now_ns) && entity.allowed.contains(cpu)
    }

    /// Calls the task to that pCPU: its slice begins there unless that is too unfair by then.
    pub fn call(&mut self, now_ns: u64, cpu: Cpu, task: Task, threshold_ns: u32) {
        let until_ns = called_until_ns(now_ns);
        self.tasks[task.index()].called_until_ns = until_ns;
        self.cpus[cpu.index()].call = Some(Call {
            task,
            threshold_ns,
            until_ns,
        });
    }

    /// The task that was called there, if its slice may begin: `take_call()`. The task that ran there waits in its
    /// queue already.
    pub(super) fn take_call(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        let call = self.cpus[cpu.index()].call.take()?;
        if !is_called(call.until_ns, now_ns) || !self.tasks[call.task.index()].queued {
            return None;
        }
        let first = self.head(cpu)?;
        let places = BuddyPlaces {
            candidate_ns: self.position_ns(call.task),
            waiting_ns: self.position_ns(first),
            yielder_ns: None,
            threshold_ns: call.threshold_ns,
        };
        (places.outcome() == BuddyOutcome::Runs).then_some(call.task)
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

    /// Two pCPUs; tasks 0 and 1 run since 0, 2 and 3 wait.
    fn two_vms() -> Steer {
        let mut steer = Steer::new(Topology::new(1, 1, 2, 1).expect("pCPUs"), 3 * MS);
        for _ in 0..4 {
            let task = steer.add_task(Group(0), NICE_0_WEIGHT, Allowed::All, None);
            steer.enqueue(0, task, Cpu(0), Enqueue::New);
        }
        assert_eq!(steer.pick_next(0, Cpu(0)), Some(Task(0)));
        assert_eq!(steer.pick_next(0, Cpu(1)), Some(Task(1)));
        steer
    }

    /// Even tasks are of VM 0, odd ones of VM 1.
    fn vm_of(task: Task) -> Option<u32> {
        Some(task.0 % 2)
    }

    fn cut(steer: &Steer, now_ns: u64, vm: u32) -> Option<Cpu> {
        steer.find_cut(now_ns, 0, vm, vm_of)
    }

    #[test]
    fn only_another_vms_slice_that_has_run_for_a_while_is_cut() {
        let steer = two_vms();
        assert_eq!(cut(&steer, MS - 1, 0), None);
        assert_eq!(cut(&steer, MS, 0), Some(Cpu(1)));
        assert_eq!(cut(&steer, MS, 1), Some(Cpu(0)));
        assert_eq!(steer.find_cut(MS, 1, 1, vm_of), None, "from there on");
        assert_eq!(steer.find_cut(MS, 0, 0, |_| None), None, "no vCPU");
    }

    #[test]
    fn who_is_called_begins_a_slice_and_who_was_cut_has_paid_for_what_it_ran() {
        let mut steer = two_vms();
        assert!(steer.may_be_called(MS, Task(2), Cpu(1)));
        steer.call(MS, Cpu(1), Task(2), 3_000_000);
        assert!(!steer.may_be_called(MS, Task(2), Cpu(0)), "called already");
        assert_eq!(cut(&steer, MS, 0), None, "one call at a time");
        steer.put_previous(MS, Cpu(1), true);
        assert_eq!(steer.pick_next(MS, Cpu(1)), Some(Task(2)));
        assert!(steer.slice_begins_now(MS, Cpu(1)));
        assert_eq!(steer.slice_left_ns(MS, Cpu(1)), 3 * MS);
        assert_eq!(steer.charged_ns(Task(1)), MS);
    }

    #[test]
    fn a_call_that_is_too_unfair_or_too_late_is_none() {
        // Task 2 waits at the start position, as all do; task 3 is as near. Beyond the threshold the first task runs.
        let mut unfair = two_vms();
        let ahead_ns = unfair.tasks[2].vtime_ns + 4 * MS;
        unfair.requeue_at(Task(2), ahead_ns);
        for (threshold_ns, next) in [(5_000_000, Task(2)), (2_000_000, Task(3))] {
            let mut steer = unfair.clone();
            steer.call(MS, Cpu(1), Task(2), threshold_ns);
            steer.put_previous(MS, Cpu(1), true);
            let ran = steer.pick_next(MS, Cpu(1));
            assert_eq!(
                ran == Some(Task(2)),
                next == Task(2),
                "{threshold_ns}: {ran:?}"
            );
        }
        let mut late = two_vms();
        late.call(MS, Cpu(1), Task(2), u32::MAX);
        late.take_from_queue(Task(2));
        late.put_previous(MS, Cpu(1), true);
        assert_eq!(
            late.pick_next(MS, Cpu(1)),
            Some(Task(3)),
            "it waits no more"
        );
        let mut late = two_vms();
        late.call(0, Cpu(1), Task(3), u32::MAX);
        late.put_previous(MS, Cpu(1), true);
        assert_eq!(
            late.pick_next(MS, Cpu(1)),
            Some(Task(2)),
            "nobody wants it any more"
        );
    }
}
