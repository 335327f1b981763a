// SPDX-License-Identifier: MIT OR Apache-2.0
//! The observer that writes a Perfetto trace.

use std::io::{self, Write};

use crate::{
    ids::{Cpu, Task},
    perfetto::{
        interrupts::Interrupts,
        locks::Locks,
        messages::{
            CounterDescriptor, Process, ProcessDescriptor, ProcessTree,
            SEQ_INCREMENTAL_STATE_CLEARED, SystemInfo, Thread, ThreadDescriptor, TracePacket,
            TrackDescriptor, Utsname,
        },
        modes::{Change, Modes, exit_word},
        output::{Label, Output, TRACKS_SEQUENCE, note, note_text},
        scheduling::{RELEASE, Runnable, Scheduling},
        trace_ids::TraceIds,
        tracks::{Kind, OneTrack, process_track, runnable_track, thread_track, waiters_track},
    },
    trace_event::{Observer, TraceEvent},
};

/// Writes events as a Perfetto trace while they happen; its memory is bounded by the number of tasks, plus a few
/// megabytes.
///
/// Times must not decrease. An error of the sink is kept and returned by [`PerfettoWriter::finish`].
///
/// # Panics
/// When an event names a task, VM or lock that has no id in the trace.
pub struct PerfettoWriter<W: Write> {
    trace_ids: TraceIds,
    out: Output<W>,
    scheduling: Scheduling,
    locks: Locks,
    interrupts: Interrupts,
    modes: Modes,
    borrowed: OneTrack,
    borrows: Vec<bool>,
    events: OneTrack,
    runnable: Runnable,
    unattributed: u64,
}

/// The result of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Number of packets, each of which is a bundle of switches, a track event or a track's description.
    pub packets: u64,
    /// Size of the trace.
    pub bytes: u64,
    /// Events of a vCPU without a current task, which are not in the trace.
    pub unattributed: u64,
}

impl<W: Write> PerfettoWriter<W> {
    /// Begins a trace with the names of all tasks.
    pub fn new(sink: W, trace_ids: TraceIds) -> PerfettoWriter<W> {
        let tasks = trace_ids.tasks.len();
        let mut out = Output::new(sink);
        introduce(&mut out, &trace_ids);
        PerfettoWriter {
            scheduling: Scheduling::new(trace_ids.cpus),
            locks: Locks::new(&trace_ids),
            interrupts: Interrupts::new(tasks),
            modes: Modes::new(tasks),
            borrowed: OneTrack::new(Kind::Borrowed, "borrowed time", tasks),
            borrows: vec![false; tasks],
            events: OneTrack::new(Kind::Events, "events", tasks),
            runnable: Runnable::new(trace_ids.cpus, tasks),
            unattributed: 0,
            trace_ids,
            out,
        }
    }

    /// Ends all slices and the trace at that time; returns the sink.
    ///
    /// # Errors
    /// The sink's first error.
    pub fn finish(mut self, now_ns: u64) -> io::Result<(W, Written)> {
        self.locks.finish(&mut self.out, now_ns);
        self.interrupts
            .finish(&mut self.out, now_ns, &mut self.events);
        self.modes.finish(&mut self.out, now_ns);
        for task in 0..self.borrows.len() {
            self.borrow(now_ns, Task(task as u32), false);
        }
        self.scheduling
            .finish(&self.trace_ids, now_ns, &mut self.out);
        let (sink, packets, bytes) = self.out.finish()?;
        let written = Written {
            packets,
            bytes,
            unattributed: self.unattributed,
        };
        Ok((sink, written))
    }

    /// Handles events of the scheduler; false: it is none.
    fn scheduled(&mut self, now_ns: u64, cpu: Cpu, what: TraceEvent) -> bool {
        let (trace_ids, out) = (&self.trace_ids, &mut self.out);
        match what {
            TraceEvent::SwitchIn { task } => {
                self.scheduling.switch_in(trace_ids, now_ns, cpu, task);
                self.runnable.moves(out, now_ns, task, Some(cpu));
                self.modes.change(out, now_ns, task, Change::Runs(true));
            }
            TraceEvent::SwitchOut {
                task,
                runnable,
                preempted,
            } => {
                let place = (now_ns, cpu);
                self.scheduling
                    .switch_out(trace_ids, place, task, runnable, preempted);
                self.runnable
                    .moves(out, now_ns, task, runnable.then_some(cpu));
                self.modes.change(out, now_ns, task, Change::Runs(false));
            }
            TraceEvent::Wakeup { task, target } => {
                self.scheduling
                    .waking(trace_ids, (now_ns, cpu), task, target);
                self.runnable.moves(out, now_ns, task, Some(target));
                self.modes.change(out, now_ns, task, Change::Halts(false));
            }
            TraceEvent::BorrowBegin { task } => self.borrow(now_ns, task, true),
            TraceEvent::BorrowEnd { task } => self.borrow(now_ns, task, false),
            _ => return false,
        }
        true
    }

    /// Handles events of a vCPU.
    fn did(&mut self, now_ns: u64, cpu: Cpu, task: Task, what: TraceEvent) {
        let (trace_ids, out) = (&self.trace_ids, &mut self.out);
        let mut mode = |change| self.modes.change(out, now_ns, task, change);
        match what {
            TraceEvent::User => mode(Change::Inside("user")),
            TraceEvent::Kernel => mode(Change::Inside("kernel")),
            TraceEvent::Exit { reason } => mode(Change::Outside(exit_word(reason))),
            TraceEvent::Entry => mode(Change::Entered),
            TraceEvent::Halted => mode(Change::Halts(true)),
            TraceEvent::PauseExit { window } => {
                mode(Change::Outside("exit: pause"));
                let notes = vec![note("window", window.into())];
                self.event(now_ns, task, "pause-loop exit", notes);
            }
            TraceEvent::YieldTo { target, result } => {
                let target = note_text("target", &trace_ids.task(target).name);
                let notes = vec![target, note("result", result.into())];
                self.event(now_ns, task, "yield_to", notes);
            }
            TraceEvent::LockAsked { lock } => self.locks.asked(out, trace_ids, now_ns, task, lock),
            TraceEvent::LockTaken { lock } => self.locks.taken(out, trace_ids, now_ns, task, lock),
            TraceEvent::LockReleased { lock } => self.locks.released(out, now_ns, task, lock),
            TraceEvent::IpiSent { receiver, vector } => {
                let track = self.events.track(out, task);
                self.interrupts
                    .sent(out, trace_ids, now_ns, track, receiver, vector);
            }
            TraceEvent::InterruptTaken { vector } => {
                self.interrupts.taken(out, (now_ns, cpu), task, vector);
            }
            TraceEvent::InterruptDone => self.interrupts.done(out, now_ns, task),
            TraceEvent::SwitchIn { .. }
            | TraceEvent::SwitchOut { .. }
            | TraceEvent::Wakeup { .. }
            | TraceEvent::BorrowBegin { .. }
            | TraceEvent::BorrowEnd { .. } => {}
        }
    }

    fn event(
        &mut self,
        now_ns: u64,
        task: Task,
        name: &str,
        notes: Vec<crate::perfetto::messages::DebugAnnotation>,
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
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent) {
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

/// Writes the names of processes, threads and counters, for the scheduler's events and for tracks.
fn introduce<W: Write>(out: &mut Output<W>, trace_ids: &TraceIds) {
    let threads = trace_ids.all_tasks().map(|(task, entry)| Thread {
        tid: Some(trace_ids.thread(task)),
        name: Some(entry.name.clone()),
        tgid: Some(trace_ids.process(entry.vm)),
    });
    let processes = trace_ids.processes().map(|(pid, name)| Process {
        pid: Some(pid),
        cmdline: vec![name.to_owned()],
    });
    // One kind of content in each packet: it is a `oneof`.
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
    introduce_tracks(out, trace_ids);
}

fn introduce_tracks<W: Write>(out: &mut Output<W>, trace_ids: &TraceIds) {
    for (index, (pid, name)) in trace_ids.processes().enumerate() {
        out.descriptor(TrackDescriptor {
            uuid: Some(process_track(crate::ids::Vm(index as u32))),
            process: Some(ProcessDescriptor {
                pid: Some(pid),
                process_name: Some(name.to_owned()),
            }),
            ..TrackDescriptor::default()
        });
    }
    for (task, entry) in trace_ids.all_tasks() {
        out.descriptor(TrackDescriptor {
            uuid: Some(thread_track(task)),
            thread: Some(ThreadDescriptor {
                pid: Some(trace_ids.process(entry.vm)),
                tid: Some(trace_ids.thread(task).into()),
                thread_name: Some(entry.name.clone()),
            }),
            ..TrackDescriptor::default()
        });
    }
    for cpu in (0..trace_ids.cpus).map(Cpu) {
        let name = format!("runnable, pCPU {}", cpu.0);
        counter(out, runnable_track(cpu), name, None);
    }
    for (index, lock) in trace_ids.locks.iter().enumerate() {
        let track = waiters_track(crate::ids::Lock(index as u32));
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
