// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/order.h`.

use super::Weight;
use crate::{raw, steering::OrderFacts};

/// A task that spins, or the candidate that may run instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderPlace {
    /// Its virtual time at its last charge.
    pub vtime_ns: u64,
    /// Its effective weight.
    pub weight: Weight,
    /// The number of the queue whose clock its virtual time follows.
    pub queue: u32,
    /// The number of its group.
    pub group: u32,
}

/// The queue in which the candidate waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderQueue {
    /// Its clock, ns.
    pub clock_ns: u64,
    /// Number of tasks that wait in it.
    pub waiting: u32,
    /// The kernel's base slice.
    pub slice_ns: u64,
}

/// Compares a task that spins with a candidate in their queue. `uncharged_ns`: what the spinner has run since its last
/// charge; `waits`: whether the candidate waits in its queue.
pub fn order_facts(
    spinner: OrderPlace,
    uncharged_ns: u64,
    candidate: OrderPlace,
    waits: bool,
    queue: OrderQueue,
) -> OrderFacts {
    let mut order = OrderFacts::UNKNOWN;
    let place = |place: OrderPlace| raw::unspin_order_place {
        vtime_ns: place.vtime_ns,
        weight: place.weight.raw(),
        queue: place.queue,
        group: place.group,
    };
    let (spinner, candidate) = (place(spinner), place(candidate));
    // SAFETY: valid structs for the length of each call; weights are 1 or more.
    unsafe {
        raw::unspin_order_of_candidate(&mut order, &spinner, &candidate, waits);
        raw::unspin_order_of_self(&mut order, &spinner, &candidate, uncharged_ns);
        let (clock_ns, slice_ns) = (queue.clock_ns, queue.slice_ns);
        raw::unspin_order_of_queue(&mut order, &candidate, clock_ns, queue.waiting, slice_ns);
    }
    order
}
