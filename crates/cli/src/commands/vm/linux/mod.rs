// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux`: unmodified Linux guests.

pub(crate) mod args;
pub(crate) mod locks;
pub(crate) mod policies;
pub(crate) mod run;
pub(crate) mod tables;

use unspin_agent::Health;
use unspin_events::VcpuCounters;
use unspin_linux_guest::Report;
use unspin_vmm::PauseLoop;

pub use run::run;

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
