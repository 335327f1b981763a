// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where vCPUs were and what they waited for, as a host can rebuild it.

pub(crate) mod histogram;
pub mod host_waits;
pub mod presence;
pub mod spin_locations;
pub(crate) mod spin_waits;
pub(crate) mod vm_learning;
pub mod vm_record;
