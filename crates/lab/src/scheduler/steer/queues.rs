// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a task waits, and whose slice begins: the model of bpf/scheduler/queues.bpf.h and of `run_least()` in bpf/scheduler/main.bpf.c.

use super::{Allowed, Steer};
use crate::ids::{Cpu, Task};

impl Steer {
    pub(super) fn queue(&mut self, task: Task, cpu: Cpu) {
        let queue = match self.tasks[task.index()].allowed {
            Allowed::All => None,
            Allowed::Only(_) => Some(cpu),
        };
        self.place_task(task, queue);
        let entity = &mut self.tasks[task.index()];
        entity.queued = true;
        entity.cpu = Some(cpu);
        let key = (entity.vtime_ns, task.0);
        match queue {
            None => self.shared.insert(key),
            Some(cpu) => self.own[cpu.index()].insert(key),
        };
    }

    pub(super) fn take_from_queue(&mut self, task: Task) {
        let entity = &mut self.tasks[task.index()];
        entity.queued = false;
        let key = (entity.vtime_ns, task.0);
        match entity.home {
            None => self.shared.remove(&key),
            Some(cpu) => self.own[cpu.index()].remove(&key),
        };
    }

    /// The earlier of the two heads that this pCPU may run; the queues are set side by side: `align()`.
    pub(super) fn head(&mut self, cpu: Cpu) -> Option<Task> {
        let common = self.shared.first().copied();
        let own = self.own[cpu.index()].first().copied();
        let (Some(common), Some(own)) = (common, own) else {
            return common.or(own).map(|first| Task(first.1));
        };
        let own_ns = own.0 + self.clocks[cpu.index()].offset_ns;
        let more_ns = if own_ns < common.0 {
            self.beyond_ns(Task(common.1), common.0 - own_ns)
        } else {
            -self.beyond_ns(Task(own.1), own_ns - common.0)
        };
        self.clocks[cpu.index()].offset_ns += more_ns;
        let own_first = own_ns + more_ns <= common.0;
        Some(Task(if own_first { own.1 } else { common.1 }))
    }

    pub(super) fn leave_cpu(&mut self, task: Task, cpu: Cpu, runnable: bool) {
        if runnable {
            self.queue(task, cpu);
        } else {
            self.tasks[task.index()].cpu = None;
            self.activate(task, false);
        }
    }

    pub(super) fn begin_slice(&mut self, task: Task, cpu: Cpu) {
        self.take_from_queue(task);
        let (vtime_ns, home) = (
            self.tasks[task.index()].vtime_ns,
            self.tasks[task.index()].home,
        );
        // After a yield_buddy somebody may wait who has less, and must not fall behind the clock (`set_clock()`).
        let least_ns = match home {
            None => self.shared.first(),
            Some(cpu) => self.own[cpu.index()].first(),
        }
        .map_or(vtime_ns, |first| first.0.min(vtime_ns));
        match home {
            None => self.shared_now_ns = self.shared_now_ns.max(least_ns),
            Some(cpu) => {
                let clock = &mut self.clocks[cpu.index()];
                clock.now_ns = clock.now_ns.max(least_ns);
                if self.shared.is_empty() && self.own[cpu.index()].is_empty() {
                    clock.offset_ns = self.shared_now_ns - clock.now_ns;
                }
            }
        }
        let slice_ns = self.slice_ns;
        let here = &mut self.cpus[cpu.index()];
        here.slice = Some(task);
        here.slice_left_ns = slice_ns;
    }
}
