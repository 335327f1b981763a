// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/virtual_time.h`.

use super::Weight;
use crate::raw;

/// Time between two ticks of the host, ns.
pub const TICK_NS: u64 = raw::UNSPIN_TICK_NS as u64;

/// The clock of a queue, and the offset that is added to its virtual times to compare them with those of other queues;
/// the shared queue's offset is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueClock {
    /// The virtual time of the last task that began a slice while no waiting task had a lower one.
    pub now_ns: u64,
    /// The offset to the shared queue's virtual times.
    pub offset_ns: u64,
}

impl QueueClock {
    /// The clock by which a task is placed that enters this queue; `nobody_waits`: the queue is empty.
    pub fn placing_ns(&self, shared_now_ns: u64, nobody_waits: bool) -> u64 {
        // SAFETY: functions of numbers alone, here and below.
        unsafe {
            let abreast_ns = raw::unspin_abreast(shared_now_ns, self.offset_ns);
            raw::unspin_placing_clock(self.now_ns, abreast_ns, nobody_waits)
        }
    }

    /// A task of this queue begins a slice. `least_waiting_ns`: the least virtual time of the tasks that wait in the
    /// queue, if any.
    pub fn advance(&mut self, vtime_ns: u64, least_waiting_ns: Option<u64>) {
        let (waits, least_ns) = (least_waiting_ns.is_some(), least_waiting_ns.unwrap_or(0));
        // SAFETY: as above.
        self.now_ns = unsafe { raw::unspin_advance_clock(self.now_ns, vtime_ns, waits, least_ns) };
    }

    /// No task waits in this queue nor in the shared one: aligns the two clocks.
    pub fn set_abreast(&mut self, shared_now_ns: u64) {
        // SAFETY: as above.
        self.offset_ns = unsafe { raw::unspin_offset_abreast(shared_now_ns, self.now_ns) };
    }
}

/// The virtual time of a new task where the clock by which it is placed is at `clock_ns`.
pub fn start_vtime_ns(clock_ns: u64, weight: Weight, slice_ns: u64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_start_vtime(clock_ns, weight.raw(), slice_ns) }
}

/// Whether one virtual time is less than another.
pub fn before(one_ns: u64, other_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_before(one_ns, other_ns) }
}

/// The virtual time of a task that has run for `ran_ns` more; `clock_ns`: its queue's clock.
pub fn charged_vtime_ns(
    vtime_ns: u64,
    weight: Weight,
    ran_ns: u64,
    clock_ns: u64,
    slice_ns: u64,
) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_charge_vtime(vtime_ns, weight.raw(), ran_ns, clock_ns, slice_ns) }
}

/// The virtual time of a task that enters a queue. `debt_ns`: what other tasks ran at its charge and is not in its
/// virtual time yet; `clock_ns`: [`QueueClock::placing_ns`].
pub fn placed_vtime_ns(
    vtime_ns: u64,
    weight: Weight,
    debt_ns: u64,
    clock_ns: u64,
    slice_ns: u64,
) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_place_vtime(vtime_ns, weight.raw(), debt_ns, clock_ns, slice_ns) }
}

/// A virtual time converted to another queue's clock.
pub fn moved_vtime_ns(vtime_ns: u64, from_offset_ns: u64, to_offset_ns: u64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_moved_vtime(vtime_ns, from_offset_ns, to_offset_ns) }
}

/// What to add to the offset of a pCPU's own queue before the heads of that queue and the shared one, at these
/// positions, are compared; may be negative, wrapped around. `weight_ahead` returns the weight of the head that is
/// ahead (true: the shared queue's); it is called only if the heads are further apart than tasks of nice 0 can be.
pub fn align_ns(
    own_ns: u64,
    shared_ns: u64,
    slice_ns: u64,
    weight_ahead: impl FnOnce(bool) -> Weight,
) -> u64 {
    // SAFETY: as above.
    if !unsafe { raw::unspin_far_apart(own_ns, shared_ns, slice_ns) } {
        return 0;
    }
    let weight = weight_ahead(before(own_ns, shared_ns));
    // SAFETY: as above.
    unsafe { raw::unspin_align(own_ns, shared_ns, weight.raw(), slice_ns) }
}

/// Whether a pCPU takes the head of the shared queue rather than that of its own, by their positions.
pub fn shared_is_first(own_ns: Option<u64>, shared_ns: Option<u64>) -> bool {
    let of = |head: Option<u64>| (head.is_some(), head.unwrap_or(0));
    let ((own_waits, own_ns), (shared_waits, shared_ns)) = (of(own_ns), of(shared_ns));
    // SAFETY: as above.
    unsafe { raw::unspin_shared_is_first(own_waits, own_ns, shared_waits, shared_ns) }
}
