// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts: a slice while a vCPU handles one, an arrow from its sender.

use std::io::Write;

use crate::{
    ids::{Cpu, Task},
    perfetto::{
        output::{Label, Output, note, note_text},
        trace_ids::TraceIds,
        tracks::{Kind, OneTrack, Tracks},
    },
    trace_event::Vector,
};

/// The number of arrows to one receiver for one vector that are drawn before it handles them. Later ones are not drawn,
/// so that a receiver that does not run for long uses bounded memory.
const PENDING_MAX: usize = 64;
const VECTORS: usize = 3;

/// The interrupts of all tasks.
pub struct Interrupts {
    /// An interrupt that interrupts a handler has the next track; the key of a track is its nesting depth.
    tracks: Tracks<usize>,
    /// By task.
    depth: Vec<usize>,
    /// By receiver and vector: arrows that have not ended.
    pending: Vec<[Vec<u64>; VECTORS]>,
}

impl Interrupts {
    pub fn new(tasks: usize) -> Interrupts {
        Interrupts {
            tracks: Tracks::new(Kind::Interrupts, "interrupts", tasks),
            depth: vec![0; tasks],
            pending: (0..tasks).map(|_| Default::default()).collect(),
        }
    }

    pub fn sent<W: Write>(
        &mut self,
        out: &mut Output<W>,
        trace_ids: &TraceIds,
        now_ns: u64,
        track: u64,
        receiver: Task,
        vector: Vector,
    ) {
        let pending = &mut self.pending[receiver.index()][index(vector)];
        let mut flows = Vec::new();
        if pending.len() < PENDING_MAX {
            let flow = out.new_flow();
            pending.push(flow);
            flows.push(flow);
        }
        let name = format!("send {}", word(vector));
        let label = Label {
            category: "ipi",
            name: &name,
            notes: vec![note_text("receiver", &trace_ids.task(receiver).name)],
            flows,
            ..Label::default()
        };
        out.instant(now_ns, track, label);
    }

    pub fn taken<W: Write>(
        &mut self,
        out: &mut Output<W>,
        (now_ns, cpu): (u64, Cpu),
        task: Task,
        vector: Vector,
    ) {
        let depth = &mut self.depth[task.index()];
        let track = self.tracks.enter(out, task, *depth);
        *depth += 1;
        let label = Label {
            category: "ipi",
            name: word(vector),
            notes: vec![note("pcpu", i64::from(cpu.0))],
            flows_end: std::mem::take(&mut self.pending[task.index()][index(vector)]),
            ..Label::default()
        };
        out.slice_begin(now_ns, track, label);
    }

    pub fn done<W: Write>(&mut self, out: &mut Output<W>, now_ns: u64, task: Task) {
        let depth = &mut self.depth[task.index()];
        *depth = depth.saturating_sub(1);
        if let Some(track) = self.tracks.leave(task, *depth) {
            out.slice_end(now_ns, track);
        }
    }

    /// Ends every slice. Arrows whose interrupt was never handled end at an instant of the receiver.
    pub fn finish<W: Write>(&mut self, out: &mut Output<W>, now_ns: u64, events: &mut OneTrack) {
        for (_, _, track) in self.tracks.leave_all() {
            out.slice_end(now_ns, track);
        }
        for (receiver, vectors) in self.pending.iter_mut().enumerate() {
            for flows_end in vectors.iter_mut().map(std::mem::take) {
                if flows_end.is_empty() {
                    continue;
                }
                let track = events.track(out, Task(receiver as u32));
                let label = Label {
                    category: "ipi",
                    name: "not handled yet",
                    flows_end,
                    ..Label::default()
                };
                out.instant(now_ns, track, label);
            }
        }
    }
}

const fn word(vector: Vector) -> &'static str {
    match vector {
        Vector::Tick => "tick",
        Vector::Shootdown => "shootdown",
        Vector::Reschedule => "reschedule",
    }
}

const fn index(vector: Vector) -> usize {
    match vector {
        Vector::Tick => 0,
        Vector::Shootdown => 1,
        Vector::Reschedule => 2,
    }
}
