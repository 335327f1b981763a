// SPDX-License-Identifier: MIT OR Apache-2.0
//! The models of policy/model.

mod apple;
mod deboost;
mod inefficiency;
mod lag_credit;
mod pause_loop;
mod ple_window;
mod spin_threshold;
