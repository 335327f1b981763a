// SPDX-License-Identifier: MIT OR Apache-2.0
//! One VM: its memory, its vCPUs, what the guest is given.

pub(crate) mod memory;
pub(crate) mod page_tables;
pub(crate) mod parameters;
pub(crate) mod registers;
pub(crate) mod vcpu;
pub(crate) mod vm;
