// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observers of a run: a counter of events by kind, and the counter with a trace.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::Path,
};

use unspin_scenario::Scenario;

use crate::{
    LabHost,
    ids::{Cpu, Task},
    perfetto::{PerfettoWriter, TraceIds, Written},
    trace_event::{ExitReason, Observer, TraceEvent},
};

/// Kinds of events, by the names in tables; [`kind`] gives the index.
pub const KINDS: [&str; 23] = [
    "switch in",
    "switch out",
    "wake-up",
    "user mode",
    "kernel mode",
    "lock asked",
    "lock taken",
    "lock released",
    "pause exit",
    "yield_to done",
    "yield_to refused",
    "exit: interrupt",
    "exit: HLT",
    "exit: hypercall",
    "exit: APIC write",
    "entry",
    "IPI sent",
    "interrupt taken",
    "interrupt done",
    "halted",
    "borrow begins",
    "borrow ends",
    "exit: page fault",
];

#[inline]
const fn kind(what: &TraceEvent) -> usize {
    match what {
        TraceEvent::SwitchIn { .. } => 0,
        TraceEvent::SwitchOut { .. } => 1,
        TraceEvent::Wakeup { .. } => 2,
        TraceEvent::User => 3,
        TraceEvent::Kernel => 4,
        TraceEvent::LockAsked { .. } => 5,
        TraceEvent::LockTaken { .. } => 6,
        TraceEvent::LockReleased { .. } => 7,
        TraceEvent::PauseExit { .. } => 8,
        TraceEvent::YieldTo { result, .. } => {
            if *result > 0 {
                9
            } else {
                10
            }
        }
        TraceEvent::Exit { reason } => match reason {
            ExitReason::Interrupt => 11,
            ExitReason::Halt => 12,
            ExitReason::Hypercall => 13,
            ExitReason::Apic => 14,
            ExitReason::PageFault => 22,
        },
        TraceEvent::Entry => 15,
        TraceEvent::IpiSent { .. } => 16,
        TraceEvent::InterruptTaken { .. } => 17,
        TraceEvent::InterruptDone => 18,
        TraceEvent::Halted => 19,
        TraceEvent::BorrowBegin { .. } => 20,
        TraceEvent::BorrowEnd { .. } => 21,
    }
}

/// Counts events by kind, and switches by pCPU.
pub struct Counter {
    /// Counts, in the order of [`KINDS`].
    pub kinds: [u64; KINDS.len()],
    /// Switches to a task, by pCPU.
    pub switches: Vec<u64>,
}

impl Counter {
    /// All counts 0.
    pub fn new(cpus: u32) -> Counter {
        Counter {
            kinds: [0; KINDS.len()],
            switches: vec![0; cpus as usize],
        }
    }
}

impl Observer for Counter {
    #[inline]
    fn on_event(&mut self, _: u64, cpu: Cpu, _: Option<Task>, what: TraceEvent) {
        self.kinds[kind(&what)] += 1;
        if let TraceEvent::SwitchIn { .. } = what {
            self.switches[cpu.index()] += 1;
        }
    }
}

/// A counter, and the writer of a trace.
pub struct Traced {
    /// The counter.
    pub counter: Counter,
    writer: PerfettoWriter<BufWriter<File>>,
}

impl Traced {
    /// Begins a trace in that file, with the names of all tasks.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, scenario: &Scenario, host: &LabHost) -> io::Result<Traced> {
        let file = BufWriter::new(File::create(path)?);
        let cpus = host.topology.cpus();
        Ok(Traced {
            counter: Counter::new(cpus),
            writer: PerfettoWriter::new(file, TraceIds::of(scenario, host)),
        })
    }

    /// Ends the trace at that time.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self, now_ns: u64) -> io::Result<(Counter, Written)> {
        let (file, written) = self.writer.finish(now_ns)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok((self.counter, written))
    }
}

impl Observer for Traced {
    #[inline]
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent) {
        self.counter.on_event(now_ns, cpu, task, what);
        self.writer.on_event(now_ns, cpu, task, what);
    }
}
