// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of pause loops, windows, thresholds and credits.

pub(crate) mod apple;
pub(crate) mod deboost;
pub(crate) mod inefficiency;
pub(crate) mod lag_credit;
pub(crate) mod pause_loop;
