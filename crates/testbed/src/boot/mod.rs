// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot of the emulated machine, from outside.

pub(crate) mod attempt;
pub(crate) mod channel;
pub(crate) mod command_line;
pub(crate) mod host_clock;
pub(crate) mod memory_file;
pub(crate) mod qemu;
pub(crate) mod record;
pub(crate) mod returned;
