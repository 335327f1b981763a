// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that lie, and hosts that are changed under the scheduler's feet.

pub mod attaching;
pub mod beside;
pub mod code;
pub mod guests;
pub mod kinds;
pub mod stuck;
pub mod user_processes;
