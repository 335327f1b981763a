// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler's mechanics of policy/mechanics, which BPF and the lab share.

mod bandwidth;
mod buddy_and_gang;
mod crowd;
mod domains;
mod order;
mod shares;
mod slice;
mod starvation_bound;
mod virtual_time;
mod wakeup;
mod weights;

const MS: u64 = 1_000_000;
/// The kernel's base slice on four CPUs.
const SLICE_NS: u64 = 2_100_000;
