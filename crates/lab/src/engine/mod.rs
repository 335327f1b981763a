// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: what happens next.

pub mod timers;
mod winner_tree;

pub use winner_tree::{NEVER_NS, SLOTS_MAX, WinnerTree};
