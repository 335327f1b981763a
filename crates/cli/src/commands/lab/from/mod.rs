// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab from`: a recording as a scenario.

pub(crate) mod run;
pub(crate) mod seen;
pub(crate) mod work;

pub use run::run;
