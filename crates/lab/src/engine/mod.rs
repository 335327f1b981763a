// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: finds the next event. The pending events are a winner tree (tournament tree; Knuth, The Art of Computer
//! Programming 3, 5.4.1) with one leaf per slot and four children per node: half as many levels as with two, and the
//! other three children are in the same cache line.

pub mod timers;

/// The time of a slot without an event: the end of 48 bits, 78 hours.
pub const NEVER_NS: u64 = u64::MAX >> SLOT_BITS;

/// The largest number of slots.
pub const SLOTS_MAX: u32 = 1 << SLOT_BITS;

/// Bits of a key below the time.
const SLOT_BITS: u32 = 16;

/// Finds the slot with the earliest time among a fixed number; ties go to the lowest slot.
///
/// A key is `time_ns << 16 | slot`, so one comparison orders both, and no two slots have equal keys. Each inner node
/// has the smallest key of its four children; the root has the earliest. Changing a leaf recomputes the nodes on its
/// path, a fixed number, without a branch that depends on times.
#[derive(Clone, Debug)]
pub struct WinnerTree {
    /// Node 1 is the root, the children of node n are 4n to 4n + 3. So row r begins at 4^r and has 4^r nodes; the
    /// indices between the rows are unused. The leaves are the second half; the length is twice a power of four.
    nodes: Vec<u64>,
    slots: u32,
}

impl WinnerTree {
    /// A tree in which no slot has an event.
    ///
    /// # Panics
    /// Unless there are 1 to [`SLOTS_MAX`] slots.
    pub fn new(slots: u32) -> WinnerTree {
        assert!((1..=SLOTS_MAX).contains(&slots), "1 to 65536 slots");
        let leaves = 1 << (slots.next_power_of_two().ilog2().next_multiple_of(2));
        let mut nodes = vec![u64::MAX; 2 * leaves];
        for (slot, node) in nodes[leaves..].iter_mut().enumerate() {
            *node = key(NEVER_NS, slot as u32);
        }
        let mut row = leaves;
        while row > 1 {
            row /= 4;
            for parent in row..2 * row {
                let children = nodes[4 * parent..4 * parent + 4].iter();
                nodes[parent] = children.copied().fold(u64::MAX, u64::min);
            }
        }
        WinnerTree { nodes, slots }
    }

    /// The number of slots.
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Sets the time of the slot's event, replacing any other; [`NEVER_NS`] and later times mean none.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline]
    pub fn set(&mut self, slot: u32, time_ns: u64) {
        assert!(slot < self.slots, "no such slot");
        let mut winner = key(time_ns.min(NEVER_NS), slot);
        let mut node = (self.nodes.len() >> 1) + slot as usize;
        // SAFETY: slot < slots <= leaves = len / 2, so the leaf is in its row, leaves..len. Below the root a row begins at a
        // multiple of 4, so the three others of a node's four are in its row, and its parent in the row above: all in 1..len.
        unsafe {
            *self.nodes.get_unchecked_mut(node) = winner;
            while node > 1 {
                let others = [1, 2, 3].map(|other| *self.nodes.get_unchecked(node ^ other));
                winner = winner.min(others[0].min(others[1]).min(others[2]));
                node >>= 2;
                *self.nodes.get_unchecked_mut(node) = winner;
            }
        }
    }

    /// The time of that slot's event; [`NEVER_NS`] if it has none.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline]
    pub fn time_ns(&self, slot: u32) -> u64 {
        assert!(slot < self.slots, "no such slot");
        self.nodes[(self.nodes.len() >> 1) + slot as usize] >> SLOT_BITS
    }

    /// The earliest time and its slot, the lowest of several. ([`NEVER_NS`], 0) if no slot has an event.
    #[inline]
    pub fn next(&self) -> (u64, u32) {
        let key = self.nodes[1];
        (key >> SLOT_BITS, (key & u64::from(SLOTS_MAX - 1)) as u32)
    }
}

/// Orders by time, then by slot; the time is at most [`NEVER_NS`], the slot below [`SLOTS_MAX`].
const fn key(time_ns: u64, slot: u32) -> u64 {
    time_ns << SLOT_BITS | slot as u64
}

#[cfg(test)]
mod tests {
    use std::{cmp::Reverse, collections::BinaryHeap};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_tree_waits_for_nothing() {
        for slots in [1, 2, 3, 4, 5, 64, 65, SLOTS_MAX] {
            let tree = WinnerTree::new(slots);
            assert_eq!(tree.next(), (NEVER_NS, 0));
            assert_eq!(tree.slots(), slots);
        }
    }

    #[test]
    fn ties_go_to_the_lowest_slot_and_late_times_are_never() {
        let mut tree = WinnerTree::new(SLOTS_MAX);
        tree.set(SLOTS_MAX - 1, 7);
        assert_eq!(tree.next(), (7, SLOTS_MAX - 1));
        tree.set(40, 7);
        tree.set(3, 8);
        assert_eq!(tree.next(), (7, 40));
        tree.set(0, 0);
        assert_eq!(tree.next(), (0, 0));
        for (slot, late_ns) in [
            (0, u64::MAX),
            (3, NEVER_NS + 1),
            (40, 1 << 63),
            (SLOTS_MAX - 1, NEVER_NS),
        ] {
            tree.set(slot, late_ns);
        }
        assert_eq!(tree.next(), (NEVER_NS, 0));
        assert_eq!(tree.time_ns(40), NEVER_NS);
    }

    #[test]
    #[should_panic(expected = "no such slot")]
    fn a_slot_that_is_padding_is_refused() {
        WinnerTree::new(5).set(5, 1);
    }

    proptest! {
        /// Against a heap from which obsolete entries are dropped when they come up.
        #[test]
        fn is_a_priority_queue(
            slots in 1u32..=70,
            changes in proptest::collection::vec((any::<u32>(), prop_oneof![0u64..8, 0..NEVER_NS, Just(NEVER_NS)]), 1..300),
        ) {
            let mut tree = WinnerTree::new(slots);
            let mut times = vec![NEVER_NS; slots as usize];
            let mut heap: BinaryHeap<_> = (0..slots).map(|slot| Reverse((NEVER_NS, slot))).collect();
            for (slot, time_ns) in changes {
                let slot = slot % slots;
                tree.set(slot, time_ns);
                times[slot as usize] = time_ns;
                heap.push(Reverse((time_ns, slot)));
                while heap.peek().is_some_and(|Reverse((time_ns, slot))| times[*slot as usize] != *time_ns) {
                    heap.pop();
                }
                prop_assert_eq!(Some(tree.next()), heap.peek().map(|Reverse(earliest)| *earliest));
                prop_assert_eq!(tree.time_ns(slot), time_ns);
            }
        }
    }
}
