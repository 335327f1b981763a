// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a task waits, and which slice begins: the model of bpf/scheduler/queues.bpf.h and of `run_least()` in
//! bpf/scheduler/main.bpf.c.

use unspin_policy::{
    mechanics::{align_ns, shared_is_first},
    steering::{answer_slices_left, uses_locks},
};

use super::{Allowed, Steer};
use crate::ids::{Cpu, Task};

impl Steer {
    pub(super) fn queue(&mut self, task: Task, cpu: Cpu, wakes: bool) {
        let queue = match self.tasks[task.index()].allowed {
            Allowed::All => None,
            Allowed::Only(_) => Some(cpu),
        };
        self.place_task(task, queue, wakes);
        self.tasks[task.index()].cpu = Some(cpu);
        self.insert(task);
        self.note_share(task, cpu);
    }

    /// Inserts the task into the queue whose clock its virtual time follows, at its position.
    fn insert(&mut self, task: Task) {
        self.tasks[task.index()].queued = true;
        let key = self.key(task);
        match self.tasks[task.index()].home {
            None => self.shared.insert(key),
            Some(cpu) => self.own[cpu.index()].insert(key),
        };
    }

    pub(super) fn take_from_queue(&mut self, task: Task) {
        self.tasks[task.index()].queued = false;
        let key = self.key(task);
        match self.tasks[task.index()].home {
            None => self.shared.remove(&key),
            Some(cpu) => self.own[cpu.index()].remove(&key),
        };
    }

    /// Changes the virtual time of a waiting task, in the queue where it is.
    pub(super) fn requeue_at(&mut self, task: Task, vtime_ns: u64) {
        self.take_from_queue(task);
        self.tasks[task.index()].vtime_ns = vtime_ns;
        self.insert(task);
    }

    /// The earlier of the two heads that this pCPU may run, after the queues have been aligned: `align()`.
    pub(super) fn head(&mut self, cpu: Cpu) -> Option<Task> {
        let common = self.shared.first().map(|key| Task(key.1));
        let own = self.own[cpu.index()].first().map(|key| Task(key.1));
        let (Some(common), Some(own)) = (common, own) else {
            return common.or(own);
        };
        let (own_ns, common_ns) = (self.position_ns(own), self.position_ns(common));
        let more_ns = align_ns(own_ns, common_ns, self.slice_ns, |common_is_ahead| {
            self.flat_weight(if common_is_ahead { common } else { own })
        });
        let clock = &mut self.clocks[cpu.index()];
        clock.offset_ns = clock.offset_ns.wrapping_add(more_ns);
        let own_ns = own_ns.wrapping_add(more_ns);
        let common_first = shared_is_first(Some(own_ns), Some(common_ns));
        Some(if common_first { common } else { own })
    }

    /// The task with the least virtual time, as `ops.dispatch` chooses when no other rule names the next one.
    pub(super) fn least(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        self.bound_starvation(now_ns, cpu);
        if let Some(task) = self.serve_share(now_ns, cpu) {
            return Some(task);
        }
        let head = self.head(cpu);
        if let Some(task) = head {
            self.cpus[cpu.index()].front_ns = self.position_ns(task);
        }
        head
    }

    pub(super) fn leave_cpu(&mut self, task: Task, cpu: Cpu, runnable: bool) {
        if runnable {
            self.queue(task, cpu, false);
        } else {
            self.note_sleep(task);
            self.tasks[task.index()].cpu = None;
            self.activate(task, false);
        }
    }

    pub(super) fn begin_slice(&mut self, now_ns: u64, task: Task, cpu: Cpu) {
        self.take_from_queue(task);
        let (vtime_ns, home) = (
            self.tasks[task.index()].vtime_ns,
            self.tasks[task.index()].home,
        );
        let least_ns = match home {
            None => self.shared.first(),
            Some(cpu) => self.own[cpu.index()].first(),
        }
        .map(|first| first.0 as u64);
        match home {
            None => self.shared_clock.advance(vtime_ns, least_ns),
            Some(cpu) => {
                let clock = &mut self.clocks[cpu.index()];
                clock.advance(vtime_ns, least_ns);
                if self.shared.is_empty() && least_ns.is_none() {
                    clock.set_abreast(self.shared_clock.now_ns);
                }
            }
        }
        let known = &mut self.tasks[task.index()];
        known.answer_slices = answer_slices_left(known.answer_slices);
        known.uses_locks = uses_locks(known.lock_ns, now_ns, known.answer_slices);
        let slice_ns = match known.vcpu {
            true => self.vcpu_slice_ns(task),
            false => self.slice_ns,
        };
        let here = &mut self.cpus[cpu.index()];
        here.slice = Some(task);
        here.slice_left_ns = slice_ns;
        here.granted = false;
    }
}
