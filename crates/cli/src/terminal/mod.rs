// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every command does with the terminal: results, progress, failures, Ctrl-C.

pub(crate) mod command;
pub(crate) mod failure;
pub(crate) mod interrupt;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod replay;
pub(crate) mod service_manager;
