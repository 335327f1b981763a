// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the micro guest (`guest/`) in VMs under `/dev/kvm`, as a [`Scenario`](unspin_scenario::Scenario) says.
//!
//! [`run()`] creates every VM in this process, one named thread per vCPU (`vm0/vcpu3`), lets all of them go at once,
//! and brings back statistics and the guests' own log of waits; [`Running`] leaves them running between readings. Nothing here is particular to AMD; on Intel it is
//! written to the same interface but untested.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the micro guest is x86-64 and needs Linux's KVM");

mod affinity;
mod calibrate;
pub mod calibration;
mod clock;
mod construct;
mod cpuid;
mod error;
mod fleet;
mod host;
mod kick;
mod limits;
mod memory;
mod options;
mod page_tables;
mod parameters;
mod pause_loop;
mod pv_pages;
mod registers;
mod report;
mod run;
mod running;
mod snapshot;
mod thread;
mod vcpu;
mod vm;

pub use calibrate::WorkRate;
pub use error::{Error, GuestFailure};
pub use options::{Fault, Phase, RunOptions};
pub use parameters::STALL_SPINS;
pub use pause_loop::PauseLoop;
pub use pv_pages::PvPages;
pub use report::{RunReport, VcpuReport, VmReport, growth};
pub use run::run;
pub use running::Running;
pub use snapshot::{Snapshot, VcpuGrowth, VmGrowth};
