// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the lab's timeline as a Perfetto trace (perfetto.dev), a file for ui.perfetto.dev and trace_processor. VMs
//! are processes and vCPUs their threads, scheduled by native scheduler events; locks, modes and interrupts are slices
//! on tracks below each vCPU; arrows lead from a lock's release to the next holder, and from an inter-processor
//! interrupt to its handler.

mod interrupts;
mod locks;
mod messages;
mod modes;
mod output;
mod scheduling;
mod trace_ids;
mod tracks;
mod writer;

pub use trace_ids::{LockEntry, TaskEntry, TraceIds};
pub use writer::{PerfettoWriter, Written};
