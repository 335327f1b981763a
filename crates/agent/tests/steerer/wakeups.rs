// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks of the host that wake up beside CPU hogs, and slices that end in time, not in ticks.

use std::time::{Duration, Instant};
use unspin_testbed::check;

use unspin_agent::Steerer;

use super::{
    host::{Busy, counter, pin, set_online, still_there},
    vms::steer,
};

const PERIOD: Duration = Duration::from_millis(2);

/// How often it sleeps before it counts: that its runs are short has to be seen.
const SEEN: usize = 20;

/// How late a thread wakes up that sleeps for a period each time and does next to nothing, sorted.
fn lateness(times: usize) -> Vec<Duration> {
    // SAFETY: takes numbers only: timers of this thread expire when they are due.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
    let mut late: Vec<Duration> = (0..SEEN + times)
        .map(|_| {
            let begin = Instant::now();
            std::thread::sleep(PERIOD);
            begin.elapsed() - PERIOD
        })
        .skip(SEEN)
        .collect();
    late.sort();
    late
}

check!(STEERER: one_that_sleeps_runs_when_it_wakes_up);
/// Beside three hogs a CPU, and beside twenty: without preemption it waited for a slice to end, 1.9 ms in the median.
pub fn one_that_sleeps_runs_when_it_wakes_up() {
    let steerer = steer("refuse-yields", |_| ());
    for hogs in [6, 40] {
        let before = counter(&steerer, "wakeups_preempt");
        let busy = Busy::threads(hogs);
        std::thread::sleep(Duration::from_millis(100));
        let late = lateness(200);
        drop(busy);
        let preempted = counter(&steerer, "wakeups_preempt") - before;
        // One emulated CPU waits for milliseconds now and then while the other one has its turn: not of the last ones.
        let (median, p95) = (late[100], late[190]);
        println!(
            "  {hogs} hogs: late by {median:?}, 95 % by {p95:?} at most, {preempted} preempted"
        );
        assert!(median < Duration::from_micros(500), "{hogs}: {median:?}");
        assert!(p95 < Duration::from_millis(2), "{hogs}: {p95:?}");
        assert!(preempted > 100, "{hogs}: {preempted}");
    }
    still_there(&steerer);
}

check!(STEERER: a_slice_ends_on_time);
/// Two hogs on one CPU change places every 1.4 ms, the kernel's base slice on two CPUs, and not at ticks of 4 ms; also on a CPU
/// that was off meanwhile, with its timer.
pub fn a_slice_ends_on_time() {
    let steerer = steer("refuse-yields", |_| ());
    two_change_places(&steerer, 1);
    set_online(1, false);
    set_online(1, true);
    two_change_places(&steerer, 1);
    still_there(&steerer);
}

/// On that CPU.
fn two_change_places(steerer: &Steerer, cpu: usize) {
    let hogs = [Busy::start(0, None), Busy::start(0, None)];
    for hog in &hogs {
        pin(hog.id(), &[cpu]);
    }
    std::thread::sleep(Duration::from_millis(100));
    let (before, begin) = (counter(steerer, "switches"), Instant::now());
    std::thread::sleep(Duration::from_millis(700));
    let switches = counter(steerer, "switches") - before;
    let per_second = switches as f64 / begin.elapsed().as_secs_f64();
    println!("  {per_second:.0} tasks began to run per second");
    // 714 of the hogs, and a few of others; at ticks 250.
    assert!((650.0..1_000.0).contains(&per_second), "{per_second}");
}
