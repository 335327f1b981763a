// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a stream of events means: events in order of time and the facts beside them go in, the same figures come out every
//! time. [`Source`] reads them from files; nothing else in here knows where they come from.

mod cpu_time;
mod exits;
pub mod explain;
mod exponential;
pub mod outcomes;
mod source;
mod survey;
mod symbols;
pub mod threshold;
pub mod verdict;
pub mod waits;

pub use cpu_time::{CpuTimer, CpuTimes};
pub use exits::epochs::{EndedEpoch, Epochs, WindowUnit};
pub use exits::ipi_record::{Ipi, IpiRecord, IpiSums, Latency, ReceiverState};
pub use exits::reasons::{ByOutcome, Evidence, Location, Locations, Matrix};
pub use exits::{ExitAnalysis, Exits, RunLengths, Sight, VmExits, analyse};
pub use source::{Source, SourceError, read_guest_log, read_symbols};
pub use survey::{Gap, LOSS_REACH_NS, Survey};
pub use symbols::{Symbols, SymbolsError};
pub use threshold::measured::Measured;
pub use threshold::predicted_wall_gain;
pub use threshold::valley::{Valley, valley};
pub use threshold::{Choice, Thresholds, thresholds};
pub use waits::histogram::{WAIT_BUCKETS, WaitHistogram};
pub use waits::spin_waits::{SpinWaits, VmWaits, WindowTimes};
