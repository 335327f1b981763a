// SPDX-License-Identifier: MIT OR Apache-2.0
//! The observer.

use std::io::{self, Write};

use unspin_lab::{
    happening::{Happening, Observer},
    ids::{Cpu, Task},
};

use crate::{
    cast::Cast,
    counters::Runnable,
    interrupts::Interrupts,
    lanes::{Kind, OneLane, process_track, runnable_track, thread_track, waiters_track},
    locks::Locks,
    messages::{
        CounterDescriptor, Process, ProcessDescriptor, ProcessTree, SEQ_INCREMENTAL_STATE_CLEARED,
        SystemInfo, Thread, ThreadDescriptor, TracePacket, TrackDescriptor, Utsname,
    },
    modes::{Change, Modes, exit_word},
    output::{Label, Output, TRACKS_SEQUENCE, note, note_text},
    scheduling::{RELEASE, Scheduling},
};

/// Writes what happens as a Perfetto trace, as it happens; what it keeps is bounded by who appears, a few megabytes more.
///
/// Times must not go back. An error of the sink is kept and comes out of [`PerfettoWriter::finish`].
///
/// # Panics
/// When somebody appears who is not in the cast.
pub struct PerfettoWriter<W: Write> {
    cast: Cast,
    out: Output<W>,
    scheduling: Scheduling,
    locks: Locks,
    interrupts: Interrupts,
    modes: Modes,
    borrowed: OneLane,
    borrows: Vec<bool>,
    events: OneLane,
    runnable: Runnable,
    unattributed: u64,
}

/// What became of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Packets, each of which is a switch bundle, an event of a track or the description of one.
    pub packets: u64,
    /// Size of the trace.
    pub bytes: u64,
    /// Happenings of a vCPU that came without a current task: they are not in the trace.
    pub unattributed: u64,
}

impl<W: Write> PerfettoWriter<W> {
    /// Begins a trace with everybody's name.
    pub fn new(sink: W, cast: Cast) -> PerfettoWriter<W> {
        let tasks = cast.tasks.len();
        let mut out = Output::new(sink);
        introduce(&mut out, &cast);
        PerfettoWriter {
            scheduling: Scheduling::new(cast.cpus),
            locks: Locks::new(&cast),
            interrupts: Interrupts::new(tasks),
            modes: Modes::new(tasks),
            borrowed: OneLane::new(Kind::Borrowed, "borrowed time", tasks),
            borrows: vec![false; tasks],
            events: OneLane::new(Kind::Events, "events", tasks),
            runnable: Runnable::new(cast.cpus, tasks),
            unattributed: 0,
            cast,
            out,
        }
    }

    /// Ends all that lasts at that time, and the trace; the sink.
    ///
    /// # Errors
    /// The first that the sink gave.
    pub fn finish(mut self, now_ns: u64) -> io::Result<(W, Written)> {
        self.locks.finish(&mut self.out, now_ns);
        self.interrupts
            .finish(&mut self.out, now_ns, &mut self.events);
        self.modes.finish(&mut self.out, now_ns);
        for task in 0..self.borrows.len() {
            self.borrow(now_ns, Task(task as u32), false);
        }
        self.scheduling.finish(&self.cast, now_ns, &mut self.out);
        let (sink, packets, bytes) = self.out.finish()?;
        let written = Written {
            packets,
            bytes,
            unattributed: self.unattributed,
        };
        Ok((sink, written))
    }

    /// What concerns the scheduler; false: it does not.
    fn scheduled(&mut self, now_ns: u64, cpu: Cpu, what: Happening) -> bool {
        let (cast, out) = (&self.cast, &mut self.out);
        match what {
            Happening::SwitchIn { task } => {
                self.scheduling.switch_in(cast, now_ns, cpu, task);
                self.runnable.moves(out, now_ns, task, Some(cpu));
                self.modes.change(out, now_ns, task, Change::Runs(true));
            }
            Happening::SwitchOut {
                task,
                runnable,
                preempted,
            } => {
                let place = (now_ns, cpu);
                self.scheduling
                    .switch_out(cast, place, task, runnable, preempted);
                self.runnable
                    .moves(out, now_ns, task, runnable.then_some(cpu));
                self.modes.change(out, now_ns, task, Change::Runs(false));
            }
            Happening::Wakeup { task, target } => {
                self.scheduling.waking(cast, (now_ns, cpu), task, target);
                self.runnable.moves(out, now_ns, task, Some(target));
                self.modes.change(out, now_ns, task, Change::Halts(false));
            }
            Happening::BorrowBegin { task } => self.borrow(now_ns, task, true),
            Happening::BorrowEnd { task } => self.borrow(now_ns, task, false),
            _ => return false,
        }
        true
    }

    /// What a vCPU does.
    fn did(&mut self, now_ns: u64, cpu: Cpu, task: Task, what: Happening) {
        let (cast, out) = (&self.cast, &mut self.out);
        let mut mode = |change| self.modes.change(out, now_ns, task, change);
        match what {
            Happening::User => mode(Change::Inside("user")),
            Happening::Kernel => mode(Change::Inside("kernel")),
            Happening::Exit { reason } => mode(Change::Outside(exit_word(reason))),
            Happening::Entry => mode(Change::Entered),
            Happening::Halted => mode(Change::Halts(true)),
            Happening::PauseExit { window } => {
                mode(Change::Outside("exit: pause"));
                let notes = vec![note("window", window.into())];
                self.event(now_ns, task, "pause-loop exit", notes);
            }
            Happening::YieldTo { target, result } => {
                let target = note_text("target", &cast.task(target).name);
                let notes = vec![target, note("result", result.into())];
                self.event(now_ns, task, "yield_to", notes);
            }
            Happening::LockAsked { lock } => self.locks.asked(out, cast, now_ns, task, lock),
            Happening::LockTaken { lock } => self.locks.taken(out, cast, now_ns, task, lock),
            Happening::LockReleased { lock } => self.locks.released(out, now_ns, task, lock),
            Happening::IpiSent { receiver, vector } => {
                let track = self.events.track(out, task);
                self.interrupts
                    .sent(out, cast, now_ns, track, receiver, vector);
            }
            Happening::InterruptTaken { vector } => {
                self.interrupts.taken(out, (now_ns, cpu), task, vector);
            }
            Happening::InterruptDone => self.interrupts.done(out, now_ns, task),
            Happening::SwitchIn { .. }
            | Happening::SwitchOut { .. }
            | Happening::Wakeup { .. }
            | Happening::BorrowBegin { .. }
            | Happening::BorrowEnd { .. } => {}
        }
    }

    fn event(
        &mut self,
        now_ns: u64,
        task: Task,
        name: &str,
        notes: Vec<crate::messages::DebugAnnotation>,
    ) {
        let track = self.events.track(&mut self.out, task);
        let label = Label {
            category: "kvm",
            name,
            notes,
            ..Label::default()
        };
        self.out.instant(now_ns, track, label);
    }

    fn borrow(&mut self, now_ns: u64, task: Task, begins: bool) {
        if std::mem::replace(&mut self.borrows[task.index()], begins) == begins {
            return;
        }
        let track = self.borrowed.track(&mut self.out, task);
        if begins {
            let label = Label {
                category: "policy",
                name: "borrowed",
                ..Label::default()
            };
            self.out.slice_begin(now_ns, track, label);
        } else {
            self.out.slice_end(now_ns, track);
        }
    }
}

impl<W: Write> Observer for PerfettoWriter<W> {
    fn happened(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: Happening) {
        if self.scheduled(now_ns, cpu, what) {
            self.scheduling.write_some(&mut self.out);
            return;
        }
        match task {
            Some(task) => self.did(now_ns, cpu, task, what),
            None => self.unattributed += 1,
        }
    }
}

/// Names of processes, threads and counters, for the scheduler's events and for tracks.
fn introduce<W: Write>(out: &mut Output<W>, cast: &Cast) {
    let threads = cast.all_tasks().map(|(task, entry)| Thread {
        tid: Some(cast.thread(task)),
        name: Some(entry.name.clone()),
        tgid: Some(cast.process(entry.vm)),
    });
    let processes = cast.processes().map(|(pid, name)| Process {
        pid: Some(pid),
        cmdline: vec![name.to_owned()],
    });
    // One kind of content for each packet: it is a `oneof`.
    out.packet(&TracePacket {
        timestamp: Some(0),
        system_info: Some(SystemInfo {
            utsname: Some(Utsname {
                sysname: Some("unspin lab".into()),
                release: Some(RELEASE.into()),
            }),
        }),
        trusted_packet_sequence_id: Some(TRACKS_SEQUENCE),
        sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
        ..TracePacket::default()
    });
    out.packet(&TracePacket {
        timestamp: Some(0),
        process_tree: Some(ProcessTree {
            processes: processes.collect(),
            threads: threads.collect(),
        }),
        trusted_packet_sequence_id: Some(TRACKS_SEQUENCE),
        ..TracePacket::default()
    });
    introduce_tracks(out, cast);
}

fn introduce_tracks<W: Write>(out: &mut Output<W>, cast: &Cast) {
    for (index, (pid, name)) in cast.processes().enumerate() {
        out.descriptor(TrackDescriptor {
            uuid: Some(process_track(unspin_lab::ids::Vm(index as u32))),
            process: Some(ProcessDescriptor {
                pid: Some(pid),
                process_name: Some(name.to_owned()),
            }),
            ..TrackDescriptor::default()
        });
    }
    for (task, entry) in cast.all_tasks() {
        out.descriptor(TrackDescriptor {
            uuid: Some(thread_track(task)),
            thread: Some(ThreadDescriptor {
                pid: Some(cast.process(entry.vm)),
                tid: Some(cast.thread(task).into()),
                thread_name: Some(entry.name.clone()),
            }),
            ..TrackDescriptor::default()
        });
    }
    for cpu in (0..cast.cpus).map(Cpu) {
        let name = format!("runnable, pCPU {}", cpu.0);
        counter(out, runnable_track(cpu), name, None);
    }
    for (index, lock) in cast.locks.iter().enumerate() {
        let track = waiters_track(unspin_lab::ids::Lock(index as u32));
        let name = format!("waiters, {}", lock.name);
        counter(out, track, name, lock.vm.map(process_track));
    }
}

fn counter<W: Write>(out: &mut Output<W>, track: u64, name: String, parent: Option<u64>) {
    const COUNT: i32 = 2;
    out.descriptor(TrackDescriptor {
        uuid: Some(track),
        name: Some(name),
        parent_uuid: parent,
        counter: Some(CounterDescriptor { unit: Some(COUNT) }),
        ..TrackDescriptor::default()
    });
}
