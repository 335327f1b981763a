// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux`: unmodified Linux guests.

pub(crate) mod args;
pub(crate) mod locks;
pub(crate) mod policies;
pub(crate) mod run;

pub use run::run;
