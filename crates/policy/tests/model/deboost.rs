// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ruling 30: the debooster's rule, and VEE'21's Figures 1 and 2 on a run queue of the fair scheduler.

use proptest::prelude::*;
use unspin_policy::{
    CandidateRule, CandidateState, Deboost, DeboostPair, Spinner, Walk, Where, YieldFacts, verdict,
};

const FORMS: [Deboost; 3] = [Deboost::Off, Deboost::Paper, Deboost::Ancestor];
/// sysctl_sched_wakeup_granularity of 5.6 with 8 CPUs: 1 ms x (1 + ilog2(8)).
const WAKEUP_GRANULARITY_NS: u64 = 4_000_000;
/// sched_min_granularity of 5.6 with 8 CPUs: what a resource waiter has run.
const SLICE_NS: u64 = 3_000_000;
/// A pause-loop exit of vips each 50,000 cycles at 2.1 GHz (section 2.3).
const SPIN_NS: u64 = 23_800;

fn pair(yielder_vtime: u64, target_vtime: u64) -> DeboostPair {
    DeboostPair {
        yielder_vtime,
        target_vtime,
        same_cpu: true,
        same_parent: true,
    }
}

#[test]
fn beyond_the_threshold_only() {
    for form in [Deboost::Paper, Deboost::Ancestor] {
        assert_eq!(
            form.yielder_vtime(pair(100, 150), 50),
            100,
            "not more than the threshold"
        );
        assert_eq!(form.yielder_vtime(pair(100, 151), 50), 101);
        assert_eq!(form.yielder_vtime(pair(100, 1000), 50), 950);
        assert_eq!(
            form.yielder_vtime(pair(100, 90), 0),
            100,
            "the target is behind"
        );
        assert_eq!(form.yielder_vtime(pair(100, 101), 0), 101);
        // virtual times wrap around
        assert_eq!(form.yielder_vtime(pair(u64::MAX - 9, 90), 50), 40);
        assert_eq!(form.yielder_vtime(pair(90, u64::MAX - 9), 50), 90);
    }
    assert_eq!(Deboost::Off.yielder_vtime(pair(100, 1000), 50), 100);
}

/// Only within a run queue; the paper's form only within a cgroup.
#[test]
fn where_they_share_a_queue() {
    let elsewhere = DeboostPair {
        same_cpu: false,
        ..pair(100, 1000)
    };
    let other_group = DeboostPair {
        same_parent: false,
        ..pair(100, 1000)
    };
    for form in FORMS {
        assert_eq!(form.yielder_vtime(elsewhere, 50), 100, "{}", form.name());
    }
    assert_eq!(Deboost::Paper.yielder_vtime(other_group, 50), 100);
    assert_eq!(Deboost::Ancestor.yielder_vtime(other_group, 50), 950);
}

/// Eight vCPUs of a VM in one run queue of CFS; vCPU 0 spins until `awaited` has run. vCPU 7 may be a lock waiter.
struct Queue {
    vruntimes: [u64; 8],
    spins: [bool; 8],
    eligible: [bool; 8],
    last_boosted: u32,
}

impl Queue {
    /// The others have run more than the spinner: by `ahead_ns` of virtual time.
    fn new(ahead_ns: u64) -> Self {
        let mut vruntimes = [1_000_000_000 + ahead_ns; 8];
        vruntimes[0] = 1_000_000_000;
        Queue {
            vruntimes,
            spins: [false; 8],
            eligible: [false; 8],
            last_boosted: 0,
        }
    }

    /// KVM's choice at an exit of vCPU 0, 5.6.
    fn boosted(&mut self) -> usize {
        let rule = CandidateRule::Kvm5_3;
        let spinner = Spinner::new(rule, Some(Where::Kernel));
        let mut walk = Walk::new(rule, 0, self.last_boosted, 8);
        while let Some(vcpu) = walk.next_vcpu() {
            let index = vcpu as usize;
            let candidate = YieldFacts {
                spins: self.spins[index],
                eligible: self.eligible[index],
                ..YieldFacts::new(CandidateState::Preempted, Some(Where::Kernel))
            };
            let verdict = verdict(&spinner, &candidate);
            self.eligible[index] ^= verdict.toggle;
            if verdict.take {
                walk.tried(vcpu, 1);
            }
        }
        self.last_boosted = walk.boosted().expect("all are preempted");
        self.last_boosted as usize
    }

    /// pick_next_entity(): the next buddy, unless it is further than the granularity behind the leftmost.
    fn picked(&self, buddy: usize) -> usize {
        let leftmost = (0..8)
            .min_by_key(|vcpu| self.vruntimes[*vcpu])
            .expect("eight");
        match self.vruntimes[buddy] > self.vruntimes[leftmost] + WAKEUP_GRANULARITY_NS {
            true => leftmost,
            false => buddy,
        }
    }

    /// Exits of vCPU 0 until `awaited` runs, and the longest run of them.
    fn exits_until(&mut self, awaited: usize, form: Deboost) -> (u32, u32) {
        let (mut exits, mut run, mut longest) = (0, 0, 0);
        loop {
            self.vruntimes[0] += SPIN_NS;
            exits += 1;
            run += 1;
            longest = longest.max(run);
            let target = self.boosted();
            let before = self.vruntimes;
            let pair = pair(before[0], before[target]);
            self.vruntimes[0] = form.yielder_vtime(pair, WAKEUP_GRANULARITY_NS);
            assert!(self.vruntimes[0] >= before[0]);
            let next = self.picked(target);
            if next == awaited {
                return (exits, longest);
            }
            if next != 0 {
                // The boosted vCPU is not the awaited one: it runs its slice, and vCPU 0 is next.
                self.vruntimes[next] += SLICE_NS;
                run = 0;
            }
        }
    }
}

/// Figure 1's boost of resource waiter vCPU 5, which has used up its slices: mismatch after mismatch without the debooster.
#[test]
fn figure_1() {
    let exits = |form| {
        let mut queue = Queue::new(4 * SLICE_NS);
        queue.last_boosted = 4;
        queue.exits_until(5, form)
    };
    let (stock, longest) = exits(Deboost::Off);
    assert_eq!(
        u64::from(stock),
        (4 * SLICE_NS - WAKEUP_GRANULARITY_NS).div_ceil(SPIN_NS)
    );
    assert!(longest > 100, "{longest} in a row");
    assert_eq!(exits(Deboost::Paper), (1, 1));
    assert_eq!(exits(Deboost::Ancestor), (1, 1));
}

/// Figure 2: vCPU 7, a lock waiter, is boosted in the second round. With the debooster each boost takes effect: at most
/// 2 x vCPUs exits, as the paper expects of KVM; without it vCPU 0 is scheduled repeatedly.
#[test]
fn figure_2() {
    let exits = |form| {
        let mut queue = Queue::new(4 * SLICE_NS);
        queue.spins[7] = true;
        queue.exits_until(7, form)
    };
    assert_eq!(exits(Deboost::Paper), (13, 1));
    let (stock, longest) = exits(Deboost::Off);
    assert!(
        stock > 100 && longest > 100,
        "{stock} exits, {longest} in a row"
    );
}

proptest! {
    /// Never lowered, never beyond the target minus the threshold, and enough for CFS to follow the boost.
    #[test]
    fn raised_just_enough(yielder in 0u64..1 << 62, target in 0u64..1 << 62, threshold in 0u64..1 << 62, base in any::<u64>()) {
        for form in [Deboost::Paper, Deboost::Ancestor] {
            let raised = form.yielder_vtime(pair(yielder, target), threshold);
            prop_assert!(raised >= yielder);
            prop_assert!(target.saturating_sub(raised) <= threshold);
            prop_assert!(raised == yielder || raised + threshold == target);
            // the same at any virtual time, across the wrap-around
            let moved = form.yielder_vtime(pair(yielder.wrapping_add(base), target.wrapping_add(base)), threshold);
            prop_assert_eq!(moved, raised.wrapping_add(base));
        }
    }
}
