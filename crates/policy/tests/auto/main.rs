// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy `auto`: `policy/auto/`.

mod controller;
mod trial;
mod useful_time;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
