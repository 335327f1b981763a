// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the lab's timeline into the events that a real host's observer would have recorded, so that `unspin
//! outcomes`, `explain` and `threshold` classify a run of the lab by the same code as a recording.

use crate::{
    ids::{Cpu, Task},
    perfetto::TraceIds,
    trace_event::{ExitReason, Observer, TraceEvent, Vector},
};
use unspin_events::{Event, GuestMode, IpiForm, What};

/// Codes of AMD's exits (arch/x86/include/uapi/asm/svm.h), that the analyses use.
const EXIT_INTERRUPT: u32 = 0x60;
const EXIT_PAUSE: u32 = 0x77;
const EXIT_HALT: u32 = 0x78;
const EXIT_HYPERCALL: u32 = 0x81;
const EXIT_MSR: u32 = 0x7c;
const EXIT_PAGE_FAULT: u32 = 0x400;
/// Vectors of Linux guests on x86 (arch/x86/include/asm/irq_vectors.h): function call and reschedule.
const FUNCTION_CALL: u8 = 0xfb;
const RESCHEDULE: u8 = 0xfd;
/// Locations at which the lab's guests spin: one for locks, one for answers to a function call. There is no code at
/// these addresses.
const LOCK_LOOP: u64 = 0x1000;
const ANSWER_LOOP: u64 = 0x2000;

/// An observer's state of a vCPU.
#[derive(Clone, Debug, Default)]
struct Seen {
    vm: Option<u32>,
    vcpu: u16,
    user: bool,
    asks: bool,
    entered_ns: Option<u64>,
    exit_ns: Option<u64>,
    exit_code: u32,
    /// The time of the pause-loop exit that is being handled, and of the first switch-out since.
    pause_exit: Option<(u64, Option<u64>)>,
    other_exits: u16,
    interrupt_exits: u16,
}

/// A switch-out whose successor is not known yet.
#[derive(Clone, Copy, Debug)]
struct Left {
    time_ns: u64,
    task: Task,
    runnable: bool,
    preempted: bool,
}

/// Converts trace events to events, which it passes on in order of time.
pub struct HostEvents<F> {
    tasks: Vec<Seen>,
    left: Vec<Option<Left>>,
    out: F,
}

/// The thread id of a task; not 0, which is the idle thread's.
pub const fn thread(task: Task) -> u32 {
    task.0 + 1
}

impl<F: FnMut(Event)> HostEvents<F> {
    /// For the tasks of these ids; events are passed to `out`.
    pub fn new(trace_ids: &TraceIds, out: F) -> HostEvents<F> {
        let mut numbers = vec![0; trace_ids.vms.len()];
        let mut seen = |vm: Option<u32>| {
            let vcpu = vm.map_or(0, |vm| {
                let number: &mut u16 = &mut numbers[vm as usize];
                *number += 1;
                *number - 1
            });
            Seen {
                vm,
                vcpu,
                ..Seen::default()
            }
        };
        let vms = trace_ids.tasks.iter().map(|task| task.vm.map(|vm| vm.0));
        HostEvents {
            tasks: vms.map(&mut seen).collect(),
            left: vec![None; trace_ids.cpus as usize],
            out,
        }
    }

    fn emit(&mut self, time_ns: u64, cpu: Cpu, task: Task, what: What) {
        let seen = &self.tasks[task.index()];
        if seen.vm.is_none() {
            return; // a real observer follows vCPU threads only
        }
        (self.out)(Event {
            time_ns,
            vm: seen.vm,
            vcpu: Some(seen.vcpu),
            thread: thread(task),
            cpu: cpu.0 as u16,
            what,
        });
    }

    /// Completes the switch-out on that pCPU: the next task is this one, or none.
    fn switch(&mut self, now_ns: u64, cpu: Cpu, next: Option<Task>) {
        let left = self.left[cpu.index()].take();
        let vm_of = |task: Option<Task>| task.and_then(|task| self.tasks[task.index()].vm);
        let (previous, previous_vm) = (
            left.map(|left| left.task),
            vm_of(left.map(|left| left.task)),
        );
        let next_vm = vm_of(next);
        if let Some(left) = left {
            let seen = &self.tasks[left.task.index()];
            let what = What::SwitchOut {
                next_thread: next.map_or(0, thread),
                next_vm,
                runnable: left.runnable,
                preempt: left.preempted,
                mode: Some(mode(seen.user)),
                exit_code: seen.exit_ns.map(|_| seen.exit_code),
                guest_rip: None,
            };
            self.emit(left.time_ns, cpu, left.task, what);
        }
        if let Some(task) = next {
            let what = What::SwitchIn {
                previous_thread: previous.map_or(0, thread),
                previous_vm,
            };
            self.emit(now_ns, cpu, task, what);
        }
    }

    fn exit(&mut self, now_ns: u64, cpu: Cpu, task: Task, code: u32) {
        let seen = &mut self.tasks[task.index()];
        seen.exit_ns = Some(now_ns);
        seen.exit_code = code;
        match code {
            EXIT_PAUSE => {}
            EXIT_INTERRUPT => seen.interrupt_exits = seen.interrupt_exits.saturating_add(1),
            _ => seen.other_exits = seen.other_exits.saturating_add(1),
        }
        let exit_code = Some(code.into());
        self.emit(now_ns, cpu, task, What::KvmExit { exit_code });
    }

    fn pause_exit(&mut self, now_ns: u64, cpu: Cpu, task: Task, window: u32) {
        self.exit(now_ns, cpu, task, EXIT_PAUSE);
        let seen = &mut self.tasks[task.index()];
        seen.pause_exit = Some((now_ns, None));
        let inside_ns = seen.entered_ns.map_or(0, |entered_ns| now_ns - entered_ns);
        let what = What::PauseExit {
            guest_rip: Some(if seen.asks { LOCK_LOOP } else { ANSWER_LOOP }),
            mode: Some(mode(seen.user)),
            window: Some(window),
            inside_ns: inside_ns.min(u32::MAX.into()) as u32,
            other_exits: std::mem::take(&mut seen.other_exits),
            interrupt_exits: std::mem::take(&mut seen.interrupt_exits),
        };
        self.emit(now_ns, cpu, task, what);
        self.emit(now_ns, cpu, task, What::KvmVcpuOnSpin);
    }

    fn entry(&mut self, now_ns: u64, cpu: Cpu, task: Task) {
        let seen = &mut self.tasks[task.index()];
        seen.entered_ns = Some(now_ns);
        let outside_ns = seen.exit_ns.map_or(0, |exit_ns| now_ns - exit_ns);
        let pause = seen.pause_exit.take();
        self.emit(now_ns, cpu, task, What::KvmEntry { outside_ns });
        if let Some((exit_ns, first_out_ns)) = pause {
            let what = What::PauseEntry {
                outside_ns: now_ns - exit_ns,
                handling_ns: first_out_ns.unwrap_or(now_ns) - exit_ns,
            };
            self.emit(now_ns, cpu, task, what);
        }
    }

    fn ipi(&mut self, now_ns: u64, cpu: Cpu, task: Task, receiver: Task, vector: Vector) {
        let (vector, form) = match vector {
            Vector::Shootdown => (FUNCTION_CALL, IpiForm::AllButSelf),
            Vector::Reschedule => (RESCHEDULE, IpiForm::Physical),
            Vector::Tick => return,
        };
        let what = What::Ipi {
            receiver_vcpu: self.tasks[receiver.index()].vcpu,
            vector,
            delivery_mode: 0,
            form,
            destination: None,
        };
        self.emit(now_ns, cpu, task, what);
    }
}

const fn mode(user: bool) -> GuestMode {
    if user {
        GuestMode::User
    } else {
        GuestMode::Kernel
    }
}

impl<F: FnMut(Event)> Observer for HostEvents<F> {
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent) {
        if let TraceEvent::SwitchIn { task } = what {
            self.switch(now_ns, cpu, Some(task));
            return;
        }
        if self.left[cpu.index()].is_some() {
            self.switch(now_ns, cpu, None);
        }
        match (what, task) {
            (
                TraceEvent::SwitchOut {
                    task,
                    runnable,
                    preempted,
                },
                _,
            ) => {
                if let Some((_, first_out_ns)) = &mut self.tasks[task.index()].pause_exit {
                    first_out_ns.get_or_insert(now_ns);
                }
                self.left[cpu.index()] = Some(Left {
                    time_ns: now_ns,
                    task,
                    runnable,
                    preempted,
                });
            }
            (TraceEvent::Wakeup { task: woken, .. }, waker) => {
                let waker_thread = waker.map_or(0, thread);
                self.emit(now_ns, cpu, woken, What::SchedWakeup { waker_thread });
            }
            (TraceEvent::User, Some(task)) => self.tasks[task.index()].user = true,
            (TraceEvent::Kernel, Some(task)) => self.tasks[task.index()].user = false,
            (TraceEvent::LockAsked { .. }, Some(task)) => self.tasks[task.index()].asks = true,
            (TraceEvent::LockTaken { .. }, Some(task)) => self.tasks[task.index()].asks = false,
            (TraceEvent::PauseExit { window }, Some(task)) => {
                self.pause_exit(now_ns, cpu, task, window);
            }
            (TraceEvent::YieldTo { target, result }, Some(task)) => {
                let what = What::YieldTo {
                    result: result.into(),
                    target_vcpu: Some(self.tasks[target.index()].vcpu),
                    target_thread: thread(target),
                };
                self.emit(now_ns, cpu, task, what);
            }
            (TraceEvent::Exit { reason }, Some(task)) => {
                let code = match reason {
                    ExitReason::Interrupt => EXIT_INTERRUPT,
                    ExitReason::Halt => EXIT_HALT,
                    ExitReason::Hypercall => EXIT_HYPERCALL,
                    ExitReason::Apic => EXIT_MSR,
                    ExitReason::PageFault => EXIT_PAGE_FAULT,
                };
                self.exit(now_ns, cpu, task, code);
            }
            (TraceEvent::Entry, Some(task)) => self.entry(now_ns, cpu, task),
            (TraceEvent::IpiSent { receiver, vector }, Some(task)) => {
                self.ipi(now_ns, cpu, task, receiver, vector);
            }
            _ => {}
        }
    }
}
