// SPDX-License-Identifier: MIT OR Apache-2.0
//! The walk over the VM's vCPUs, and when it ends.

use proptest::prelude::*;
use unspin_policy::{CandidateRule, Walk};

/// Three failures end the walk; a refusal does not count. The older loop does not begin its second pass after a
/// failure.
#[test]
fn three_tries() {
    let walk = |rule, last_boosted, results: &[i32]| {
        let mut walk = Walk::new(rule, 0, last_boosted, 6);
        let mut results = results.iter();
        let mut asked = Vec::new();
        while let Some(vcpu) = walk.next_vcpu() {
            asked.push(vcpu);
            walk.tried(vcpu, *results.next().expect("a result"));
        }
        (asked, walk.boosted())
    };
    let now = CandidateRule::Kvm7_2;
    assert_eq!(walk(now, 2, &[0; 5]), (vec![3, 4, 5, 1, 2], None));
    assert_eq!(walk(now, 2, &[-1, 0, -1, -1]), (vec![3, 4, 5, 1], None));
    assert_eq!(walk(now, 2, &[-1, 0, -1, 1]), (vec![3, 4, 5, 1], Some(1)));
    assert_eq!(
        walk(now, 5, &[0, -1, 0, 0, 1]),
        (vec![1, 2, 3, 4, 5], Some(5))
    );
    let then = CandidateRule::Kvm5_3;
    assert_eq!(walk(then, 2, &[-1, 0, -1]), (vec![3, 4, 5], None));
    assert_eq!(walk(then, 2, &[-1, 0, 0, 1]), (vec![3, 4, 5, 1], Some(1)));
    assert_eq!(walk(then, 5, &[-1, -1, -1]), (vec![1, 2, 3], None));
    assert_eq!(Walk::new(now, 0, 0, 1).next_vcpu(), None);
}

proptest! {
    /// Every other vCPU is considered once, in order.
    #[test]
    fn all_the_way_round(vcpus in 1u32..200, own in 0u32..200, last in 0u32..200, now in any::<bool>()) {
        let (own, last) = (own % vcpus, last % vcpus);
        let rule = if now { CandidateRule::Kvm7_2 } else { CandidateRule::Kvm5_2 };
        let mut walk = Walk::new(rule, own, last, vcpus);
        let asked: Vec<u32> = std::iter::from_fn(|| walk.next_vcpu()).collect();
        let expected: Vec<u32> = (1..=vcpus).map(|step| (last + step) % vcpus).filter(|vcpu| *vcpu != own).collect();
        prop_assert_eq!(asked, expected);
        prop_assert_eq!(walk.boosted(), None);
    }
}
