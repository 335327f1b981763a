// SPDX-License-Identifier: MIT OR Apache-2.0
//! A world of random events, each of which may follow the previous ones.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{collections::BTreeMap, io::Write};

use unspin_lab::{
    ids::{Cpu, Lock, Task, Vm},
    perfetto::{LockEntry, PerfettoWriter, TaskEntry, TraceIds, Written},
    trace_event::{ExitReason, Observer, TraceEvent, Vector},
};

/// How many things of each kind a trace must hold, by the names of `check_trace.py`.
pub type Expected = BTreeMap<&'static str, u64>;

/// That many VMs with that many vCPUs and locks each, and one thread of the host.
pub fn trace_ids(cpus: u32, vms: u32, vcpus: u32, locks: u32) -> TraceIds {
    let mut trace_ids = TraceIds {
        cpus,
        ..TraceIds::default()
    };
    for vm in 0..vms {
        trace_ids.vms.push(format!("vm{vm}"));
        trace_ids.tasks.extend((0..vcpus).map(|vcpu| TaskEntry {
            name: format!("vm{vm}/vcpu{vcpu}"),
            vm: Some(Vm(vm)),
        }));
        trace_ids.locks.extend((0..locks).map(|lock| LockEntry {
            name: format!("vm{vm}/lock{lock}"),
            vm: Some(Vm(vm)),
        }));
    }
    trace_ids.tasks.push(TaskEntry {
        name: "cpu_hog".into(),
        vm: None,
    });
    trace_ids
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Asleep,
    Queued,
    Running,
}

struct Player {
    state: State,
    wants: Option<Lock>,
    holds: Vec<Lock>,
    depth: u32,
    borrows: bool,
}

/// The world.
pub struct World<W: Write> {
    observer: PerfettoWriter<W>,
    vcpus: usize,
    now_ns: u64,
    cpus: Vec<Option<Task>>,
    players: Vec<Player>,
    /// By lock: its holders, its waiters, and whether it was released to a waiter that has not taken it yet.
    locks: Vec<(Option<Task>, u32, bool)>,
    pub expected: Expected,
}

impl<W: Write> World<W> {
    pub fn new(sink: W, trace_ids: TraceIds) -> World<W> {
        let player = |_: &TaskEntry| Player {
            state: State::Asleep,
            wants: None,
            holds: Vec::new(),
            depth: 0,
            borrows: false,
        };
        World {
            vcpus: trace_ids.tasks.len() - 1,
            now_ns: 0,
            cpus: vec![None; trace_ids.cpus as usize],
            players: trace_ids.tasks.iter().map(player).collect(),
            locks: vec![(None, 0, false); trace_ids.locks.len()],
            expected: Expected::new(),
            observer: PerfettoWriter::new(sink, trace_ids),
        }
    }

    fn emit(&mut self, cpu: usize, what: TraceEvent) {
        let task = self.cpus[cpu];
        self.observer
            .on_event(self.now_ns, Cpu(cpu as u32), task, what);
    }

    fn count(&mut self, what: &'static str) {
        *self.expected.entry(what).or_default() += 1;
    }

    /// One event, drawn from 64 random bits.
    pub fn step(&mut self, bits: u64) {
        self.now_ns += bits & 3;
        let cpu = (bits >> 2) as usize % self.cpus.len();
        let choice = bits >> 32;
        match self.cpus[cpu] {
            None => self.fill(cpu, choice),
            Some(task) if (bits >> 16) % 8 == 0 => self.leave(cpu, task, choice),
            Some(task) if task.index() == self.vcpus => {} // the CPU hog runs
            Some(task) if (bits >> 16) % 8 < 4 => self.lock(cpu, task, choice),
            Some(task) => self.act(cpu, task, choice),
        }
    }

    /// On an idle pCPU: a task is woken, or begins to run.
    fn fill(&mut self, cpu: usize, choice: u64) {
        let task = Task((choice % self.players.len() as u64) as u32);
        match self.players[task.index()].state {
            State::Running => {}
            State::Asleep => {
                self.players[task.index()].state = State::Queued;
                self.count("wakings");
                let target = Cpu((choice >> 20) as u32 % self.cpus.len() as u32);
                self.emit(cpu, TraceEvent::Wakeup { task, target });
            }
            State::Queued => {
                self.players[task.index()].state = State::Running;
                self.cpus[cpu] = Some(task);
                self.count("switch_ins");
                self.emit(cpu, TraceEvent::SwitchIn { task });
            }
        }
    }

    fn leave(&mut self, cpu: usize, task: Task, choice: u64) {
        let (runnable, preempted) =
            [(true, true), (true, false), (false, false)][(choice % 3) as usize];
        self.players[task.index()].state = if runnable {
            State::Queued
        } else {
            State::Asleep
        };
        self.count(if preempted {
            "preempted"
        } else if runnable {
            "yielded"
        } else {
            "slept"
        });
        let out = TraceEvent::SwitchOut {
            task,
            runnable,
            preempted,
        };
        self.emit(cpu, out);
        self.cpus[cpu] = None;
    }

    fn lock(&mut self, cpu: usize, task: Task, choice: u64) {
        let player = &mut self.players[task.index()];
        if let Some(lock) = player.wants {
            if self.locks[lock.index()].0.is_none() {
                player.wants = None;
                player.holds.push(lock);
                self.locks[lock.index()] = (Some(task), self.locks[lock.index()].1 - 1, false);
                self.count("holds");
                self.emit(cpu, TraceEvent::LockTaken { lock });
            }
        } else if choice % 2 == 0 && !player.holds.is_empty() {
            // Any of them: locks need not nest.
            let place = (choice >> 1) as usize % player.holds.len();
            let lock = player.holds.swap_remove(place);
            let (_, waiters, handed) = self.locks[lock.index()];
            self.locks[lock.index()] = (None, waiters, handed || waiters > 0);
            if waiters > 0 && !handed {
                self.count("handovers");
            }
            self.emit(cpu, TraceEvent::LockReleased { lock });
        } else {
            let lock = Lock(((choice >> 1) % self.locks.len() as u64) as u32);
            if !player.holds.contains(&lock) {
                player.wants = Some(lock);
                self.locks[lock.index()].1 += 1;
                self.count("waits");
                self.emit(cpu, TraceEvent::LockAsked { lock });
            }
        }
    }

    fn act(&mut self, cpu: usize, task: Task, choice: u64) {
        let vectors = [Vector::Tick, Vector::Shootdown, Vector::Reschedule];
        let vector = vectors[(choice >> 8) as usize % 3];
        let other = Task(((choice >> 16) % self.vcpus as u64) as u32);
        let player = &mut self.players[task.index()];
        match choice % 10 {
            0 => self.emit(cpu, TraceEvent::User),
            1 => self.emit(cpu, TraceEvent::Kernel),
            2 => {
                self.emit(cpu, TraceEvent::PauseExit { window: 4096 });
                let result = (choice >> 8) as i32 % 3 - 1;
                self.emit(
                    cpu,
                    TraceEvent::YieldTo {
                        target: other,
                        result,
                    },
                );
            }
            3 => self.emit(cpu, TraceEvent::Entry),
            4 => self.emit(
                cpu,
                TraceEvent::Exit {
                    reason: ExitReason::Apic,
                },
            ),
            5 if other != task => {
                self.count("ipis");
                self.emit(
                    cpu,
                    TraceEvent::IpiSent {
                        receiver: other,
                        vector,
                    },
                );
            }
            6 if player.depth < 3 => {
                player.depth += 1;
                self.count("interrupts");
                self.emit(cpu, TraceEvent::InterruptTaken { vector });
            }
            7 if player.depth > 0 => {
                player.depth -= 1;
                self.emit(cpu, TraceEvent::InterruptDone);
            }
            8 => {
                self.emit(cpu, TraceEvent::Halted);
                self.emit(cpu, TraceEvent::Entry);
            }
            9 => {
                player.borrows = !player.borrows;
                let borrows = player.borrows;
                let begin = TraceEvent::BorrowBegin { task };
                self.emit(
                    cpu,
                    if borrows {
                        begin
                    } else {
                        TraceEvent::BorrowEnd { task }
                    },
                );
            }
            _ => {}
        }
    }

    /// Ends the trace one nanosecond later.
    pub fn finish(mut self) -> (W, Written, Expected) {
        for what in [
            "wakings",
            "switch_ins",
            "waits",
            "holds",
            "handovers",
            "ipis",
            "interrupts",
        ] {
            self.expected.entry(what).or_default();
        }
        // The last slice ends with the trace, and counts as a voluntary switch.
        let running = self.cpus.iter().flatten().count() as u64;
        *self.expected.entry("yielded").or_default() += running;
        let (sink, written) = self
            .observer
            .finish(self.now_ns + 1)
            .expect("the sink takes it");
        (sink, written, self.expected)
    }
}
