// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mode of a vCPU: halted, or, while it has a pCPU, user mode, kernel mode, or outside the guest and why.

use std::io::Write;

use crate::{
    ids::Task,
    perfetto::{
        output::{Label, Output},
        tracks::{Kind, OneTrack},
    },
    trace_event::ExitReason,
};

/// The modes of all tasks.
pub struct Modes {
    tracks: OneTrack,
    tasks: Vec<Mode>,
}

#[derive(Clone, Default)]
struct Mode {
    running: bool,
    /// The last mode inside the guest; "guest" while none is known.
    guest: Option<&'static str>,
    /// Why it is outside the guest.
    outside: Option<&'static str>,
    halted: bool,
    shown: Option<&'static str>,
}

/// A change.
#[derive(Clone, Copy)]
pub enum Change {
    /// It got or lost a pCPU.
    Runs(bool),
    /// It continues in this mode, inside the guest.
    Inside(&'static str),
    /// It left the guest.
    Outside(&'static str),
    /// It entered the guest.
    Entered,
    /// It halts, or continues.
    Halts(bool),
}

impl Modes {
    pub fn new(tasks: usize) -> Modes {
        Modes {
            tracks: OneTrack::new(Kind::Mode, "mode", tasks),
            tasks: vec![Mode::default(); tasks],
        }
    }

    pub fn change<W: Write>(
        &mut self,
        out: &mut Output<W>,
        now_ns: u64,
        task: Task,
        change: Change,
    ) {
        let mode = &mut self.tasks[task.index()];
        match change {
            Change::Runs(running) => mode.running = running,
            Change::Inside(word) => {
                mode.guest = Some(word);
                mode.outside = None;
                mode.halted = false;
            }
            Change::Outside(why) => mode.outside = Some(why),
            Change::Entered => {
                mode.outside = None;
                mode.halted = false;
                mode.guest = mode.guest.or(Some("guest"));
            }
            Change::Halts(halted) => mode.halted = halted,
        }
        let wanted = match mode.halted {
            true => Some("halted"),
            false => mode.outside.or(mode.guest).filter(|_| mode.running),
        };
        if wanted == mode.shown {
            return;
        }
        let ended = std::mem::replace(&mut mode.shown, wanted).is_some();
        let track = self.tracks.track(out, task);
        if ended {
            out.slice_end(now_ns, track);
        }
        if let Some(name) = wanted {
            let label = Label {
                category: "mode",
                name,
                ..Label::default()
            };
            out.slice_begin(now_ns, track, label);
        }
    }

    /// Ends every slice.
    pub fn finish<W: Write>(&mut self, out: &mut Output<W>, now_ns: u64) {
        for task in 0..self.tasks.len() {
            self.change(out, now_ns, Task(task as u32), Change::Runs(false));
            self.change(out, now_ns, Task(task as u32), Change::Halts(false));
        }
    }
}

pub const fn exit_word(reason: ExitReason) -> &'static str {
    match reason {
        ExitReason::Interrupt => "exit: interrupt",
        ExitReason::Halt => "exit: halt",
        ExitReason::Hypercall => "exit: hypercall",
        ExitReason::Apic => "exit: APIC",
        ExitReason::PageFault => "exit: page fault",
    }
}
