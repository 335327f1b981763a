// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed: a stock distribution kernel in an emulated machine that has AMD's SVM or Intel's VMX, so that real KVM runs real
//! VMs on machines without hardware virtualisation, and, in its deterministic mode, runs them the same way every time.
//!
//! [`run`] boots it with the running binary inside, executes one command there and passes on output, files and
//! exit status. In the testbed the same binary is PID 1 and calls [`init_main`]. See `docs/testbed.md`.

mod boot;
mod channel;
mod die_with;
mod error;
mod guest;
pub mod image;
mod inputs;
mod job;
mod options;
mod run;
pub mod self_test;
mod topology;

/// For [`check!`].
pub use inventory;

pub use boot::{
    qemu::QemuFiles,
    record::{BootRecord, boot_record},
};
pub use die_with::die_with_starter;
pub use error::Error;
pub use guest::init_main;
pub use image::cache::{
    EmulatorFiles, MINIMUM_KERNEL, Machine, ModuleFile, UnpackedKernel, cache_from_environment,
    unpacked_kernel,
};
pub use inputs::Input;
pub use options::{Options, Qemu, Vendor};
pub use run::{Outcome, run, run_with};
pub use topology::Topology;
