// SPDX-License-Identifier: MIT OR Apache-2.0
//! What our programs need of the running kernel, and how they get into it.

pub(crate) mod btf;
pub(crate) mod bytes;
pub(crate) mod capabilities;
pub(crate) mod core_compat;
pub(crate) mod entries;
pub(crate) mod load;
pub(crate) mod processes;
pub(crate) mod requirements;
pub(crate) mod thread_slice;
