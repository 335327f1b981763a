// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer`: our scheduler in place of the host's.

pub(crate) mod args;
pub(crate) mod dry;
pub(crate) mod run;
pub(crate) mod wait;
pub(crate) mod windows;

pub use run::run;
