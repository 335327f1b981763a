// SPDX-License-Identifier: MIT OR Apache-2.0
//! Only VMs under our scheduler, everything else under the kernel's own.

mod beside_others;
pub mod threads;
