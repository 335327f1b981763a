// SPDX-License-Identifier: MIT OR Apache-2.0
//! eCS's extra schedule: what it saves, what it costs others, what it changes of shares.

pub mod fairness;
pub mod latency;
pub mod sections;
