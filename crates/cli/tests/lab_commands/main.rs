// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of the lab: run, compare, sweep, record, from, conform.

#[path = "../common/mod.rs"]
mod common;
mod compare;
mod conform;
mod from_recording;
mod record;
mod ring;
mod run;
mod sweep;
