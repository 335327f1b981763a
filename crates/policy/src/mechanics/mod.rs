// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mechanics of unspin's scheduler (`policy/mechanics`) with Rust types: the same C functions that the host's BPF
//! programs call. The caller keeps the queues and their first and last tasks, and does the locking.
//!
//! Virtual times wrap around and are compared by [`before`]; `slice_ns` is always the kernel's base slice.

mod bandwidth;
mod crowd;
mod domains;
mod gang;
mod order;
mod slice;
mod starvation_bound;
mod virtual_time;
mod wakeup;
mod weights;

pub use bandwidth::{
    Bandwidth, LEAST_THROTTLED_SLICE_NS, LONGEST_THROTTLED_NS, slice_in_quota_ns, throttle_ends_ns,
    throttled_too_long,
};
pub use crowd::{
    CROWD, CROWD_NOTES, FairClock, crowd_clock_ns, crowd_is_due, crowd_is_over, fair_share_ns,
    is_crowd, is_short, note_slot,
};
pub use domains::{DOMAIN_CPUS_MAX, Standing, own_standing, takes_again};
pub use gang::{BuddyOutcome, BuddyPlaces, GangPlace, called_until_ns, is_called};
pub use order::{OrderPlace, OrderQueue, order_facts};
pub use slice::{
    BorrowKind, slice_left_ns, slice_lender, slice_length_ns, slice_payer, slice_returns,
};
pub use starvation_bound::{ClockRate, LAST_COMPARED, reweighted_vtime_ns};
pub use virtual_time::{
    QueueClock, TICK_NS, align_ns, before, charged_vtime_ns, moved_vtime_ns, placed_vtime_ns,
    shared_is_first, start_vtime_ns,
};
pub use wakeup::{
    expected_burst_ns, hands_over, is_handed_over, is_protected, lag_ns, may_skip_queues,
    mean_burst_ns, wakeup_preempts, woken_vtime_ns,
};
pub use weights::{
    DEEPEST_GROUP, GroupWeight, LONGEST_RUN_NS, NICE_0_WEIGHT, Weight, weight_of_cgroup,
    weight_of_nice,
};
