// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a host at one moment: what `serve` makes metrics of, and `top` differences.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unspin_agent::WatchCounters;

/// Of the JSON on the socket. It grows when a key goes or changes its meaning.
pub const VIEW_FORMAT: u32 = 1;

/// A host at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostView {
    /// [`VIEW_FORMAT`].
    pub format: u32,
    /// Where it comes from.
    pub source: ViewSource,
    /// Which moment, on the host's monotonic clock; ns. Of a recording its last event.
    pub time_ns: u64,
    /// Why nobody is watching now; `None`: somebody is.
    pub blind: Option<String>,
    /// Counters that this source cannot give, by their names in [`WatchCounters`]; they are 0.
    pub unknown: Vec<String>,
    /// What makes the figures less than they could be, in words.
    pub limits: Vec<String>,
    /// VMs that are there, by number.
    pub vms: Vec<VmView>,
    /// How watching goes.
    pub health: WatchHealth,
}

/// Where a view comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewSource {
    /// This host, as it is.
    #[default]
    Host,
    /// A recording: every view is its end.
    Recording,
}

/// How watching goes; counts since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchHealth {
    /// Exits for which the kernel had no memory, so that they are in no counter.
    pub unseen_exits: u64,
    /// Runs of the programs that did not take place.
    pub missed_runs: u64,
    /// Readings that the kernel refused.
    pub failed_reads: u64,
    /// Sampled bursts.
    pub bursts: u64,
    /// How long they lasted together; ns.
    pub burst_ns: u64,
    /// Bursts that failed.
    pub failed_bursts: u64,
    /// Events of bursts that found no room.
    pub lost_events: u64,
    /// What went wrong last, in words.
    pub last_error: Option<String>,
}

/// A VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmView {
    /// In order of appearance.
    pub number: u64,
    /// What people call it; no two VMs of a view have the same.
    pub name: String,
    /// Its VMM's process; `None`: not known.
    pub process: Option<u32>,
    /// Sums over its vCPUs.
    pub total: WatchCounters,
    /// Its vCPUs' threads.
    pub vcpus: Vec<VcpuView>,
    /// For whom it spun, of all bursts.
    pub sampled: SampledView,
    /// The same of the last bursts, with who ran instead.
    pub recent: RecentView,
}

/// A vCPU's thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpuView {
    /// KVM's number of the vCPU.
    pub vcpu: u32,
    /// The thread.
    pub thread: u32,
    /// Counters since it was first seen.
    pub counters: WatchCounters,
}

/// CPU time in bursts, and for what of it the VM spun.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledView {
    /// CPU time of its vCPUs in bursts; ns.
    pub cpu_ns: u64,
    /// Of it spent spinning, by cause (`unspin_analysis::explain::cause::Cause::name`); ns.
    pub spin_ns: BTreeMap<String, u64>,
}

/// The last bursts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentView {
    /// How many.
    pub bursts: u64,
    /// Their sums.
    pub sampled: SampledView,
    /// Whom most of it can be blamed on, the largest first.
    pub blame: Vec<BlameView>,
}

/// Spin time for one vCPU, while one other ran in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlameView {
    /// Why; as in [`SampledView::spin_ns`].
    pub cause: String,
    /// The vCPU that was waited for; `None`: nobody who was off its CPU.
    pub vcpu: Option<u16>,
    /// Who had the CPU that it had left; `None`: not known.
    pub instead: Option<String>,
    /// Spin time; ns.
    pub spin_ns: u64,
}

impl HostView {
    /// CPU time wasted by spinning, by the view's own counters; `None`: nobody sees it.
    pub fn waste_ns(&self, counters: &WatchCounters) -> Option<u64> {
        self.knows("spin_ns").then(|| counters.waste_ns())
    }

    /// Whether the source gives that counter.
    pub fn knows(&self, counter: &str) -> bool {
        self.unknown.iter().all(|unknown| unknown != counter)
    }
}

impl SampledView {
    /// Spin time of all causes; ns.
    pub fn total_ns(&self) -> u64 {
        self.spin_ns.values().sum()
    }

    /// Both together.
    pub fn add(&mut self, other: &SampledView) {
        self.cpu_ns += other.cpu_ns;
        for (cause, ns) in &other.spin_ns {
            *self.spin_ns.entry(cause.clone()).or_default() += ns;
        }
    }
}
