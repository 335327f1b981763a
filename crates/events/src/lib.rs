// SPDX-License-Identifier: MIT OR Apache-2.0
//! One schema of events and counters for the lab, the testbed and real hosts, and what follows from them.
//!
//! `abi/bpf/events.h` is the layout; [`Event`] and [`VcpuCounters`] are its typed views, [`log`] the file, [`ground_truth`] the
//! join of the guest's ground truth with the host's switch trace.

mod clock;
mod counters;
mod event;
pub mod facts;
pub mod ground_truth;
pub mod guest_log;
pub mod log;
pub mod vm_identity;

pub use clock::{ClockError, ClockSample, TscClock};
pub use counters::{LATENCY_BUCKETS, VcpuCounters};
pub use event::{DecodeError, Event, GuestMode, IpiForm, KIND_NAMES, What};
pub use ground_truth::{SwitchTrace, ThreadState};
pub use guest_log::{GuestWait, Stall, VCPUS_MAX, WaitError, WaitKind};
