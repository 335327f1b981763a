// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin scenario`: schema and canonical form of scenario files.

pub(crate) mod args;
mod markdown;
pub(crate) mod run;

pub use run::{check, schema};
