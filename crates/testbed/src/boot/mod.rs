// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot of the emulated machine, from outside.

pub(crate) mod attempt;
pub(crate) mod bochs;
pub(crate) mod emulator;
pub(crate) mod kernel_command_line;
pub(crate) mod qemu;
pub(crate) mod record;
pub(crate) mod returned;
