// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about a spinner and a candidate in their queue.

use unspin_policy::{
    mechanics::{NICE_0_WEIGHT, OrderPlace, OrderQueue, Weight, order_facts},
    steering::{UNSPIN_NO, UNSPIN_YES},
};

use super::{MS, SLICE_NS};

const QUEUE: OrderQueue = OrderQueue {
    clock_ns: 7 * MS,
    waiting: 3,
    slice_ns: SLICE_NS,
};

fn place(vtime_ns: u64, weight: u32, queue: u32, group: u32) -> OrderPlace {
    OrderPlace {
        vtime_ns,
        weight: Weight::flat(weight, []),
        queue,
        group,
    }
}

#[test]
fn a_spinner_is_compared_with_what_it_has_run_by_its_weight() {
    let candidate = place(9 * MS, NICE_0_WEIGHT, 0, 0);
    for (weight, uncharged_ns, vtime_ns) in [
        (NICE_0_WEIGHT, 0, 5 * MS),
        (NICE_0_WEIGHT, 2 * MS, 7 * MS),
        (2 * NICE_0_WEIGHT, 2 * MS, 6 * MS),
        (NICE_0_WEIGHT / 2, 2 * MS, 9 * MS),
    ] {
        let spinner = place(5 * MS, weight, 0, 0);
        let order = order_facts(spinner, uncharged_ns, candidate, true, QUEUE);
        assert_eq!(order.self_vtime, vtime_ns, "{weight} {uncharged_ns}");
        assert_eq!(order.candidate_vtime, 9 * MS);
    }
}

#[test]
fn one_queue_serves_both_only_where_the_candidate_waits_in_it() {
    let spinner = place(5 * MS, NICE_0_WEIGHT, 4, 1);
    for (queue, waits, same) in [
        (4, true, UNSPIN_YES),
        (4, false, UNSPIN_NO),
        (5, true, UNSPIN_NO),
    ] {
        let candidate = place(9 * MS, NICE_0_WEIGHT, queue, 1);
        let order = order_facts(spinner, 0, candidate, waits, QUEUE);
        assert_eq!(order.same_queue, same, "{queue} {waits}");
        assert_eq!(order.same_group, UNSPIN_YES);
    }
    let elsewhere = place(9 * MS, NICE_0_WEIGHT, 4, 2);
    assert_eq!(
        order_facts(spinner, 0, elsewhere, true, QUEUE).same_group,
        UNSPIN_NO
    );
}

#[test]
fn of_the_queue_are_its_clock_its_tasks_and_how_far_the_candidate_may_be() {
    let spinner = place(5 * MS, NICE_0_WEIGHT, 0, 0);
    for weight in [NICE_0_WEIGHT, 10 * NICE_0_WEIGHT] {
        let candidate = place(9 * MS, weight, 0, 0);
        let order = order_facts(spinner, 0, candidate, true, QUEUE);
        assert_eq!((order.average_vtime, order.runnable), (7 * MS, 4));
        assert_eq!(order.limit_vtime, candidate.weight.reach_ns(SLICE_NS));
    }
}
