// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which task runs on which pCPU, as the kernel's scheduler events: `sched_switch` and `sched_waking`
//! (include/trace/events/sched.h).
//!
//! And the number of tasks that are runnable on each pCPU: a task counts on the pCPU where it runs, was preempted or
//! was woken; one that another pCPU takes from there counts on that pCPU when it begins to run.

use std::io::Write;

use crate::{
    ids::{Cpu, Task},
    perfetto::{
        messages::{FtraceEvent, SchedSwitch, SchedWaking},
        output::Output,
        trace_ids::TraceIds,
        tracks::runnable_track,
    },
};

/// Number of events, over all pCPUs, that are kept back (some 3 MB) before they are written as one bundle for each
/// pCPU.
const EVENTS_MAX: usize = 16_384;
/// The priority of nice 0 (include/linux/sched/prio.h, DEFAULT_PRIO).
const DEFAULT_PRIO: i32 = 120;
/// `prev_state` as Linux 4.14 and later report it: TASK_RUNNING, TASK_INTERRUPTIBLE, TASK_REPORT_MAX for a preempted one.
const RUNNING: i64 = 0;
const INTERRUPTIBLE: i64 = 1;
const PREEMPTED: i64 = 0x100;
/// A kernel version that reports states like this: readers decide by it (src/trace_processor/types/task_state.cc,
/// Perfetto v59.1).
pub const RELEASE: &str = "7.2.0";

/// The switches of all pCPUs.
pub struct Scheduling {
    cpus: Vec<OneCpu>,
    kept: usize,
}

#[derive(Default)]
struct OneCpu {
    running: Option<Task>,
    /// The task that left, when, and in what state, while its successor is not known yet.
    leaving: Option<(u64, Task, i64)>,
    events: Vec<FtraceEvent>,
}

impl Scheduling {
    pub fn new(cpus: u32) -> Scheduling {
        Scheduling {
            cpus: (0..cpus).map(|_| OneCpu::default()).collect(),
            kept: 0,
        }
    }

    pub fn switch_in(&mut self, trace_ids: &TraceIds, now_ns: u64, cpu: Cpu, task: Task) {
        self.settle(trace_ids, now_ns, cpu);
        let one = &mut self.cpus[cpu.index()];
        let previous = match one.leaving.take() {
            Some((_, previous, state)) => Some((previous, state)),
            // Its switch-out was not reported.
            None => one.running.map(|previous| (previous, RUNNING)),
        };
        one.running = Some(task);
        self.switch(trace_ids, now_ns, cpu, previous, Some(task));
    }

    pub fn switch_out(
        &mut self,
        trace_ids: &TraceIds,
        (now_ns, cpu): (u64, Cpu),
        task: Task,
        runnable: bool,
        preempted: bool,
    ) {
        self.settle(trace_ids, now_ns, cpu);
        let state = match (runnable, preempted) {
            (true, true) => PREEMPTED,
            (true, false) => RUNNING,
            (false, _) => INTERRUPTIBLE,
        };
        let one = &mut self.cpus[cpu.index()];
        if one.running.take() == Some(task) {
            one.leaving = Some((now_ns, task, state));
        }
    }

    pub fn waking(
        &mut self,
        trace_ids: &TraceIds,
        (now_ns, cpu): (u64, Cpu),
        task: Task,
        target: Cpu,
    ) {
        self.settle(trace_ids, now_ns, cpu);
        let waker = self.cpus[cpu.index()].running;
        let event = FtraceEvent {
            timestamp: Some(now_ns),
            pid: Some(waker.map_or(0, |waker| trace_ids.thread(waker) as u32)),
            sched_waking: Some(SchedWaking {
                comm: Some(trace_ids.task(task).name.clone()),
                pid: Some(trace_ids.thread(task)),
                prio: Some(DEFAULT_PRIO),
                success: Some(1),
                target_cpu: Some(target.0 as i32),
            }),
            sched_switch: None,
        };
        self.keep(cpu, event);
    }

    /// The task that left before now was followed by the idle task.
    fn settle(&mut self, trace_ids: &TraceIds, now_ns: u64, cpu: Cpu) {
        let leaving = &mut self.cpus[cpu.index()].leaving;
        if let Some((then_ns, task, state)) = leaving.take_if(|(then_ns, ..)| *then_ns < now_ns) {
            self.switch(trace_ids, then_ns, cpu, Some((task, state)), None);
        }
    }

    fn switch(
        &mut self,
        trace_ids: &TraceIds,
        now_ns: u64,
        cpu: Cpu,
        previous: Option<(Task, i64)>,
        next: Option<Task>,
    ) {
        let idle = || (format!("swapper/{}", cpu.0), 0);
        let named = |task| (trace_ids.task(task).name.clone(), trace_ids.thread(task));
        let (prev_comm, prev_pid) = previous.map_or_else(idle, |(task, _)| named(task));
        let (next_comm, next_pid) = next.map_or_else(idle, named);
        let event = FtraceEvent {
            timestamp: Some(now_ns),
            pid: Some(prev_pid as u32),
            sched_switch: Some(SchedSwitch {
                prev_comm: Some(prev_comm),
                prev_pid: Some(prev_pid),
                prev_prio: Some(DEFAULT_PRIO),
                prev_state: Some(previous.map_or(RUNNING, |(_, state)| state)),
                next_comm: Some(next_comm),
                next_pid: Some(next_pid),
                next_prio: Some(DEFAULT_PRIO),
            }),
            sched_waking: None,
        };
        self.keep(cpu, event);
    }

    fn keep(&mut self, cpu: Cpu, event: FtraceEvent) {
        self.cpus[cpu.index()].events.push(event);
        self.kept += 1;
    }

    /// Writes the kept events if there are many. A switch-out without a successor stays kept: its pCPU has no later
    /// event.
    pub fn write_some<W: Write>(&mut self, out: &mut Output<W>) {
        if self.kept >= EVENTS_MAX {
            self.write(out);
        }
    }

    fn write<W: Write>(&mut self, out: &mut Output<W>) {
        for (cpu, one) in self.cpus.iter_mut().enumerate() {
            if !one.events.is_empty() {
                out.bundle(cpu as u32, std::mem::take(&mut one.events));
            }
        }
        self.kept = 0;
    }

    /// All running tasks leave, still runnable, and everything is written.
    pub fn finish<W: Write>(&mut self, trace_ids: &TraceIds, now_ns: u64, out: &mut Output<W>) {
        for index in 0..self.cpus.len() {
            let cpu = Cpu(index as u32);
            let one = &mut self.cpus[index];
            let running = one.running.take().map(|task| (now_ns, task, RUNNING));
            if let Some((then_ns, task, state)) = one.leaving.take().or(running) {
                self.switch(trace_ids, then_ns, cpu, Some((task, state)), None);
            }
        }
        self.write(out);
    }
}

/// The counts of all pCPUs.
pub struct Runnable {
    /// By pCPU.
    counts: Vec<i64>,
    /// By task: the pCPU on which it counts; `None`: it sleeps, or nothing is known of it yet.
    places: Vec<Option<Cpu>>,
}

impl Runnable {
    pub fn new(cpus: u32, tasks: usize) -> Runnable {
        Runnable {
            counts: vec![0; cpus as usize],
            places: vec![None; tasks],
        }
    }

    /// The task counts there from now on.
    pub fn moves<W: Write>(
        &mut self,
        out: &mut Output<W>,
        now_ns: u64,
        task: Task,
        to: Option<Cpu>,
    ) {
        let from = std::mem::replace(&mut self.places[task.index()], to);
        if from == to {
            return;
        }
        for (place, change) in [(from, -1), (to, 1)] {
            if let Some(cpu) = place {
                let count = &mut self.counts[cpu.index()];
                *count += change;
                out.counter(now_ns, runnable_track(cpu), *count);
            }
        }
    }
}
