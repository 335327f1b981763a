// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin policy`: names, switching while it runs, user policies, and taking logged decisions again.

pub(crate) mod args;
pub(crate) mod run;
pub(crate) mod running;

pub use run::run;
