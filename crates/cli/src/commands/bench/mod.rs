// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench`: the locks and the lab's engine, driven directly.

pub(crate) mod args;
pub(crate) mod ecs;
pub(crate) mod engine;
pub(crate) mod host;
pub(crate) mod observing;
pub(crate) mod threads;
pub(crate) mod vm;
