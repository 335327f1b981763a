// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many tasks want each pCPU. A task counts where it runs, was preempted or was woken; one that another pCPU fetches from
//! there changes over when it begins to run.

use std::io::Write;

use crate::{
    ids::{Cpu, Task},
    perfetto::{output::Output, tracks::runnable_track},
};

/// All pCPUs.
pub struct Runnable {
    /// By pCPU.
    counts: Vec<i64>,
    /// By task: where it counts; `None`: it sleeps, or nothing is known of it yet.
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
