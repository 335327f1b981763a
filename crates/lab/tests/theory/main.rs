// SPDX-License-Identifier: MIT OR Apache-2.0
//! What queueing theory says in closed form, against what the lab measures.

#[path = "../common/mod.rs"]
mod common;
mod host;
mod locks;
mod pauses;
