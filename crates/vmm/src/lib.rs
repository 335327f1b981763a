// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the micro guest (`guest/`) in VMs under `/dev/kvm`, as a [`Scenario`](unspin_scenario::Scenario) says.
//!
//! [`run()`] creates every VM in this process, one named thread per vCPU (`vm0/vcpu3`), lets all of them go at once,
//! and brings back statistics and the guests' own log of waits; [`Running`] leaves them running between readings. Nothing here is particular to AMD; on Intel it
//! has run in the testbed's Intel machine only.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("the micro guest is x86-64 and needs Linux's KVM");

pub mod calibration;
mod error;
mod host;
mod machine;
mod options;
mod pv_pages;
mod run;

pub use error::{Error, GuestFailure};
pub use host::clock::WorkRate;
pub use host::other_vms::count_other_vms;
pub use host::pause_loop::PauseLoop;
pub use machine::parameters::STALL_SPINS;
pub use options::{Fault, Phase, RunOptions};
pub use pv_pages::PvPages;
pub use run::report::{RunReport, VcpuReport, VmReport, growth};
pub use run::running::Running;
pub use run::shares::Shares;
pub use run::snapshot::{Snapshot, VcpuGrowth, VmGrowth};
pub use run::{run, run_told};
