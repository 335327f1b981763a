// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin explain`: who lost CPU time to spinning, and for whom.

pub(crate) mod args;
pub(crate) mod run;
pub(crate) mod sentence;
pub(crate) mod tables;
pub(crate) mod timeline_svg;

pub use run::run;
