// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed: a stock distribution kernel in an emulated machine that has AMD SVM, so that real KVM runs real VMs on
//! machines without hardware virtualisation, and, in its deterministic mode, runs them the same way every time.
//!
//! [`run`] boots it with the running binary inside, executes one command there and passes on output, files and
//! exit status. In the testbed the same binary is PID 1 and calls [`init_main`]. See `testbed/README.md`.

mod attempt;
mod cache;
mod channel;
mod command_line;
pub mod cpio;
mod error;
mod executable;
mod guest;
mod host_clock;
mod initramfs;
mod job;
mod kernel_image;
mod memory_file;
mod options;
mod qemu;
mod record;
mod returned;
mod run;
pub mod self_test;
mod unpacked;

pub use cache::{
    MINIMUM_KERNEL, Machine, ModuleFile, UnpackedKernel, cache_from_environment, unpacked_kernel,
};
pub use error::Error;
pub use guest::init_main;
pub use options::{Input, Options, Qemu};
pub use record::{BootRecord, boot_record};
pub use run::{Outcome, run, run_with};
