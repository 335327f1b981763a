// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a stream of events means. No input or output in here: events in order of time and the facts beside them go in,
//! the same figures come out every time.

mod cpu_time;
mod exits;
pub mod explain;
mod exponential;
mod latency;
mod survey;
mod symbols;
mod threshold;
pub mod waits;

pub use cpu_time::{CpuTimer, CpuTimes};
pub use exits::epochs::{EndedEpoch, Epochs, WindowUnit};
pub use exits::ipi_record::{Ipi, IpiRecord, IpiSums, ReceiverState};
pub use exits::reasons::{ByOutcome, Evidence, Location, Locations, Matrix};
pub use exits::{ExitAnalysis, Exits, RunLengths, Sight, VmExits, analyse};
pub use latency::Latency;
pub use survey::{Gap, LOSS_REACH_NS, Survey};
pub use symbols::{Symbols, SymbolsError};
pub use threshold::histogram::{WAIT_BUCKETS, WaitHistogram};
pub use threshold::predicted_wall_gain;
pub use threshold::valley::{Valley, valley};
pub use threshold::{Choice, Thresholds, thresholds};
pub use waits::spin_waits::{SpinWaits, VmWaits, WindowTimes};
