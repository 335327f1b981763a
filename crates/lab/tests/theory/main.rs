// SPDX-License-Identifier: MIT OR Apache-2.0
//! Closed results of queueing theory, against the lab's measurements.

#[path = "../common/mod.rs"]
mod common;
mod host;
mod locks;
mod pauses;
