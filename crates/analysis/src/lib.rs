// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a stream of events means. No input or output in here: events in order of time and the facts beside them go in,
//! the same figures come out every time.

pub mod attribution;
pub mod cause;
mod cpu_time;
mod epochs;
pub mod evaluation;
mod exits;
mod exponential;
mod follower;
pub mod ground_truth;
mod guest_times;
mod histogram;
pub mod host_waits;
mod ipi_record;
mod last_ipi;
mod latency;
pub mod occupants;
mod pending;
pub mod presence;
mod pv_pages;
mod reasons;
pub mod spin_locations;
mod spin_waits;
mod survey;
mod symbols;
mod threshold;
mod valley;
mod vcpu;
mod vm;
mod vm_causes;
mod vm_learning;
pub mod vm_record;
mod wall_gain;

pub use cpu_time::{CpuTimer, CpuTimes};
pub use epochs::{EndedEpoch, Epochs, WindowUnit};
pub use exits::{ExitAnalysis, Exits, RunLengths, Sight, VmExits, analyse};
pub use histogram::{WAIT_BUCKETS, WaitHistogram};
pub use ipi_record::{Ipi, IpiRecord, IpiSums, ReceiverState};
pub use latency::Latency;
pub use reasons::{ByOutcome, Evidence, Location, Locations, Matrix};
pub use spin_waits::{SpinWaits, VmWaits, WindowTimes};
pub use survey::{Gap, LOSS_REACH_NS, Survey};
pub use symbols::{Symbols, SymbolsError};
pub use threshold::{Choice, Thresholds, thresholds};
pub use valley::{Valley, valley};
pub use wall_gain::predicted_wall_gain;
