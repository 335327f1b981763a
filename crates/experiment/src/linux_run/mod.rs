// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unmodified Linux guests under the distribution's QEMU, watched like any other VM (`unspin vm linux`), and the rows of what
//! they and the host say.

pub mod locks;
mod rows;

use unspin_agent::{Health, Observer};
use unspin_events::VcpuCounters;
use unspin_linux_guest::{Options, Phase, Report, run as run_guests};
use unspin_vmm::PauseLoop;

pub use rows::{LoadRunRow, RunRow, VcpuRow, VmRow};

use crate::{
    Error, Session, Work,
    linux::THREADS_MAX,
    watch::{Observe, attach_counting},
};

/// Everything that one run brought back.
pub struct LinuxRun {
    /// What QEMU's guests said.
    pub report: Report,
    /// The cell of ruling 35.
    pub features: String,
    /// The pause-loop parameters in force.
    pub pause_loop: Option<PauseLoop>,
    /// What BPF saw; `None` when it did not watch.
    pub seen: Option<LinuxSeen>,
}

/// Counters of all vCPU threads of this host at two moments.
pub struct LinuxSeen {
    /// When all guests had booted, before their loads began.
    pub at_ready: Vec<VcpuCounters>,
    /// When every VM had done its runs.
    pub at_done: Vec<VcpuCounters>,
    /// What was lost.
    pub health: Health,
}

impl LinuxSeen {
    /// What the vCPUs of a QEMU did while its guest booted, by vCPU.
    pub fn boot(&self, process: u32) -> Vec<VcpuCounters> {
        of(&self.at_ready, process).cloned().collect()
    }

    /// What they did while the loads ran; a thread that was not there before counts from its start.
    pub fn window(&self, process: u32) -> Vec<VcpuCounters> {
        of(&self.at_done, process)
            .map(|now| {
                let then = of(&self.at_ready, process)
                    .find(|then| then.thread == now.thread && then.vcpu == now.vcpu);
                then.map_or_else(|| now.clone(), |then| now.since(then))
            })
            .collect()
    }
}

fn of(counters: &[VcpuCounters], process: u32) -> impl Iterator<Item = &VcpuCounters> {
    counters
        .iter()
        .filter(move |counters| counters.process == process)
}

/// Runs the guests. `pause_loop`: the parameters in force on this host.
///
/// # Errors
/// A host that cannot be watched and must be, guests that do not boot or take too long, an interrupt.
pub fn run(
    options: &Options,
    pause_loop: Option<PauseLoop>,
    observe: Observe,
    session: &Session,
) -> Result<LinuxRun, Error> {
    let observer = attach_counting(observe, THREADS_MAX)?;
    let counters = || -> Result<Vec<VcpuCounters>, Error> {
        match &observer {
            Some(observer) => Ok(observer.counters()?),
            None => Ok(Vec::new()),
        }
    };
    let progress = session.progress;
    progress.begin("booting guests", Work::Unknown);
    let (mut at_ready, mut at_done) = (Vec::new(), Vec::new());
    let report = run_guests(options, |phase| -> Result<(), Error> {
        match phase {
            Phase::Booting(ready) => {
                progress.say(&format!("booting guests: {ready} of {}", options.vms));
            }
            Phase::Ready => at_ready = counters()?,
            Phase::Running(done) => {
                progress.say(&format!("running: {done} of {} done", options.vms));
            }
            Phase::Done => at_done = counters()?,
        }
        Ok(())
    });
    progress.end();
    let report = report?;
    let health = observer.as_ref().map(Observer::health).transpose()?;
    Ok(LinuxRun {
        report,
        features: options.features.to_string(),
        pause_loop,
        seen: health.map(|health| LinuxSeen {
            at_ready,
            at_done,
            health,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(process: u32, thread: u32, exits: u64) -> VcpuCounters {
        VcpuCounters {
            process,
            thread,
            exits,
            ..VcpuCounters::default()
        }
    }

    #[test]
    fn each_qemu_has_its_own_threads_and_the_window_is_a_difference() {
        let seen = LinuxSeen {
            at_ready: vec![counters(10, 11, 100), counters(20, 21, 7)],
            at_done: vec![
                counters(10, 11, 150),
                counters(10, 12, 3),
                counters(20, 21, 9),
            ],
            health: Health::default(),
        };
        let exits = |counters: Vec<VcpuCounters>| -> Vec<u64> {
            counters.iter().map(|counters| counters.exits).collect()
        };
        assert_eq!(exits(seen.boot(10)), [100]);
        assert_eq!(exits(seen.window(10)), [50, 3]);
        assert_eq!(exits(seen.window(20)), [2]);
        assert_eq!(exits(seen.window(30)), [0u64; 0]);
    }
}
