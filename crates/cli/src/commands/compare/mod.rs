// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare`: policies on the same work.

pub(crate) mod args;
pub(crate) mod cells;
pub(crate) mod details;
pub(crate) mod full;
pub(crate) mod lab;
pub(crate) mod matrix;
pub(crate) mod measure;
pub(crate) mod order;
pub(crate) mod pooled;
pub(crate) mod row;
pub(crate) mod run;
pub(crate) mod sentence;
pub(crate) mod steering;
pub(crate) mod table_file;
pub(crate) mod tables;
pub(crate) mod why;
pub(crate) mod windows;

pub use run::run;
