// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic of counters and of the clock.

use proptest::prelude::*;
use unspin_abi as abi;
use unspin_events::{ClockSample, LATENCY_BUCKETS, TscClock, VcpuCounters};

/// Every field another value, so that a field that is mixed up or left out shows.
fn raw(step: u64) -> abi::unspin_vcpu_counters {
    let mut raw = abi::unspin_vcpu_counters {
        vm: 1,
        thread: 2,
        vcpu: 3,
        process: 4,
        exits: 5 * step,
        ple_exits: 6 * step,
        ple_exits_user: 7 * step,
        ple_exits_unknown_mode: 8 * step,
        on_spin: 9 * step,
        on_spin_no_yield: 10 * step,
        yield_to_boosted: 11 * step,
        yield_to_refused: 12 * step,
        yield_to_failed: 13 * step,
        switches_in: 14 * step,
        switches_out_runnable: 15 * step,
        switches_out_asleep: 16 * step,
        running_ns: 17 * step,
        runnable_ns: 18 * step,
        asleep_ns: 19 * step,
        wall_ns: 54 * step,
        exit_to_entry_ns: 20 * step,
        exit_to_entry_count: [0; LATENCY_BUCKETS],
    };
    for (bucket, count) in (0u64..).zip(&mut raw.exit_to_entry_count) {
        *count = bucket * step;
    }
    raw
}

#[test]
fn differences_and_sums_take_every_counter() {
    let counters = |step| VcpuCounters::from_abi(&raw(step));
    assert_eq!(counters(5).since(&counters(2)), counters(3));
    assert_eq!(counters(2).since(&counters(5)), counters(0));
    let mut sum = counters(2);
    sum.add(&counters(4));
    assert_eq!(sum, counters(6));
    assert_eq!(counters(7).conservation_error_ns(), 0);
}

#[test]
fn a_missing_nanosecond_shows() {
    let mut counters = VcpuCounters::from_abi(&raw(1));
    counters.runnable_ns -= 1;
    assert_eq!(counters.conservation_error_ns(), -1);
    counters.asleep_ns += 3;
    assert_eq!(counters.conservation_error_ns(), 2);
}

#[test]
fn percentiles_are_upper_bounds_of_buckets() {
    let mut counters = VcpuCounters::default();
    assert_eq!(counters.exit_to_entry_percentile_ns(50), None);
    counters.exit_to_entry_count[3] = 98;
    counters.exit_to_entry_count[10] = 2;
    assert_eq!(counters.exit_to_entry_percentile_ns(0), Some(16));
    assert_eq!(counters.exit_to_entry_percentile_ns(98), Some(16));
    assert_eq!(counters.exit_to_entry_percentile_ns(99), Some(2_048));
    assert_eq!(counters.exit_to_entry_percentile_ns(100), Some(2_048));
    assert_eq!(counters.exit_to_entry_percentile_ns(1_000), Some(2_048));
}

#[test]
fn a_clock_needs_two_moments() {
    let sample = |tsc, ns| ClockSample { tsc, ns };
    assert!(TscClock::new(sample(5, 5), sample(5, 6)).is_err());
    assert!(TscClock::new(sample(5, 5), sample(6, 5)).is_err());
    assert!(TscClock::new(sample(9, 9), sample(5, 5)).is_err());
    let clock = TscClock::new(sample(1_000, 5_000), sample(4_000, 6_000)).expect("both go forward");
    assert_eq!(clock.ns(1_000), 5_000);
    assert_eq!(clock.ns(4_000), 6_000);
    assert_eq!(clock.ns(1_002), 5_000);
    assert_eq!(clock.ns(1_003), 5_001);
    assert_eq!(clock.ns(999), 4_999);
    assert_eq!(clock.duration_ns(3_000), 1_000);
    assert_eq!(clock.tsc_hz(), 3_000_000_000);
    assert_eq!((clock.first().tsc, clock.last().ns), (1_000, 6_000));
    let early =
        TscClock::new(sample(1_000_000, 10), sample(2_000_000, 20)).expect("both go forward");
    assert_eq!(early.ns(0), 0);
}

proptest! {
    #[test]
    fn clocks_go_forward_and_never_panic(
        first in any::<(u64, u64)>(), last in any::<(u64, u64)>(), one in any::<u64>(), other in any::<u64>(),
    ) {
        let sample = |(tsc, ns)| ClockSample { tsc, ns };
        if let Ok(clock) = TscClock::new(sample(first), sample(last)) {
            prop_assert!(clock.ns(one.min(other)) <= clock.ns(one.max(other)));
            prop_assert_eq!(clock.ns(first.0), first.1);
            let _ = (clock.duration_ns(one), clock.tsc_hz());
        }
    }
}
