// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cpu.max` is kept: set before the scheduler is attached, while it is, in a cgroup above, by any number of tasks.

use std::{
    fs,
    time::{Duration, Instant},
};
use unspin_testbed::check;

use super::{
    super::{
        host::{Busy, Cgroup, attach, counter, pin, set_online, still_there},
        hostile::attaching::Killed,
        vms::steer,
    },
    shares::cpu_time,
};

/// A cgroup with that `cpu.max`, us.
pub fn limited(place: &str, quota: u64, period: u64) -> Cgroup {
    let cgroup = Cgroup::new(place, 100);
    limit(&cgroup, quota, period);
    cgroup
}

fn limit(cgroup: &Cgroup, quota: u64, period: u64) {
    fs::write(cgroup.folder().join("cpu.max"), format!("{quota} {period}")).expect("a quota");
}

/// So many processes that use all the CPU time they get.
pub fn hogs(number: u32, cgroup: &Cgroup) -> Vec<Busy> {
    (0..number).map(|_| Busy::start(0, Some(cgroup))).collect()
}

/// CPU time of each per second, over that time.
pub fn rates(cgroups: &[&Cgroup], time: Duration) -> Vec<f64> {
    let times = || cgroups.iter().map(|cgroup| cpu_time(cgroup));
    let (before, began): (Vec<f64>, _) = (times().collect(), Instant::now());
    std::thread::sleep(time);
    let elapsed = began.elapsed().as_secs_f64();
    times()
        .zip(before)
        .map(|(now, then)| (now - then) / elapsed)
        .collect()
}

/// Each within so many hundredths of what it should be.
#[track_caller]
pub fn are_near(measured: &[f64], wanted: &[f64], hundredths: f64) {
    println!("  {measured:.4?} CPUs for {wanted:?}");
    for (rate, wanted) in measured.iter().zip(wanted) {
        let off = (rate / wanted - 1.0).abs() * 100.0;
        assert!(off <= hundredths, "{rate:.4} instead of {wanted}");
    }
}

/// A moment after which what was saved up, or owed, is even.
pub fn settle() {
    std::thread::sleep(Duration::from_millis(500));
}

check!(STEERER: quotas_are_kept);
/// Half a CPU for three tasks that were there before; a tenth in periods of 10 ms; the rest is others'.
fn quotas_are_kept() {
    let half = limited("half", 50_000, 100_000);
    let (_hogs, free) = (hogs(3, &half), Cgroup::new("free", 100));
    let _others = hogs(2, &free);
    let steerer = attach();
    settle();
    let time = Duration::from_secs(2);
    are_near(&rates(&[&half, &free], time), &[0.5, 1.5], 2.0);
    // Set while it runs, and by other means than before: a shorter period.
    limit(&half, 1_000, 10_000);
    settle();
    are_near(&rates(&[&half, &free], time), &[0.1, 1.9], 3.0);
    assert!(counter(&steerer, "throttled") > 100);
    // And taken off: what waits goes on at once.
    fs::write(half.folder().join("cpu.max"), "max").expect("no quota");
    settle();
    are_near(&rates(&[&half, &free], time), &[1.0, 1.0], 2.0);
    let before = counter(&steerer, "throttled");
    std::thread::sleep(time);
    assert_eq!(counter(&steerer, "throttled"), before);
    still_there(&steerer);
}

check!(STEERER: quotas_hold_where_nobody_else_waits);
/// One task of a limited group alone on its CPU, the other CPU idle: no other task ends its slice.
fn quotas_hold_where_nobody_else_waits() {
    let steerer = attach();
    let quarter = limited("quarter", 25_000, 100_000);
    let hog = hogs(1, &quarter);
    settle();
    are_near(&rates(&[&quarter], Duration::from_secs(2)), &[0.25], 2.0);
    // Pinned, it waits in the queue of its CPU in between.
    pin(hog[0].id(), &[1]);
    settle();
    are_near(&rates(&[&quarter], Duration::from_secs(2)), &[0.25], 2.0);
    // What is let go of comes back although its CPU went meanwhile.
    pin(hog[0].id(), &[0, 1]);
    set_online(1, false);
    settle();
    are_near(&rates(&[&quarter], Duration::from_secs(2)), &[0.25], 2.0);
    set_online(1, true);
    still_there(&steerer);
}

check!(STEERER: quotas_nest);
/// outer: 0.6 of a CPU; outer/inner: 0.1 of it; outer/beside: what is left; and `away`, with no quota.
fn quotas_nest() {
    let steerer = attach();
    let outer = limited("outer", 60_000, 100_000);
    let inner = limited("outer/inner", 10_000, 100_000);
    let (beside, away) = (Cgroup::new("outer/beside", 100), Cgroup::new("away", 100));
    let _hogs = [hogs(2, &inner), hogs(2, &beside), hogs(2, &away)];
    settle();
    let time = Duration::from_secs(2);
    are_near(
        &rates(&[&inner, &beside, &away], time),
        &[0.1, 0.5, 1.4],
        3.0,
    );
    // The one above alone stops both.
    limit(&outer, 5_000, 100_000);
    settle();
    are_near(&rates(&[&outer, &away], time), &[0.05, 1.95], 5.0);
    still_there(&steerer);
}

check!(GUESTS: a_vm_keeps_to_its_quota);
/// A VM of four vCPUs that yield to one another, in half a CPU.
fn a_vm_keeps_to_its_quota() {
    let steerer = steer("loan,kernel-exit", |_| ());
    let half = limited("half", 50_000, 100_000);
    let free = Cgroup::new("free", 100);
    let (vm, beside) = (Killed::vm("fighting", 3), Killed::vm("fighting", 4));
    half.adopt(vm.id());
    free.adopt(beside.id());
    settle();
    let rates = rates(&[&half, &free], Duration::from_secs(2));
    are_near(&rates[..1], &[0.5], 3.0);
    assert!(rates[1] > 1.4, "{rates:?}");
    still_there(&steerer);
}

check!(STEERER_LONG: a_small_quota_of_many_tasks_ejects_nobody);
/// 600 tasks in a hundredth of a CPU: none is without a CPU for the 5 s after which the kernel's watchdog would remove the scheduler.
fn a_small_quota_of_many_tasks_ejects_nobody() {
    let steerer = attach();
    let small = limited("small", 1_000, 100_000);
    let many = Busy::threads(600);
    // All of them are there by then.
    std::thread::sleep(Duration::from_secs(3));
    small.adopt(many.id());
    settle();
    let rate = rates(&[&small], Duration::from_secs(20));
    println!(
        "  {rate:.4?} CPUs for 0.01; {} of {} throttled for 2 s",
        counter(&steerer, "throttled_too_long"),
        counter(&steerer, "throttled")
    );
    // Each runs for 0.1 ms in 2 s, at least: that is three times the quota, and the price of not being removed.
    assert!((0.009..0.035).contains(&rate[0]), "{rate:?}");
    assert!(counter(&steerer, "throttled_too_long") > 100);
    still_there(&steerer);
    drop(many);
}

check!(STEERER_LONG: quotas_are_kept_over_ten_seconds);
/// Quotas, periods and bursts of many kinds, set before and during, as on the kernel's own scheduler beside it: within 5 % over 10 s.
fn quotas_are_kept_over_ten_seconds() {
    let of = [
        ("a", 50_000, 100_000, 2),
        ("b", 30_000, 100_000, 5),
        ("c", 2_000, 20_000, 1),
        ("d", 200_000, 1_000_000, 3),
    ];
    let wanted = [0.5, 0.3, 0.1, 0.2];
    let groups: Vec<Cgroup> = of
        .iter()
        .map(|(name, quota, period, _)| limited(name, *quota, *period))
        .collect();
    let _hogs: Vec<Vec<Busy>> = of
        .iter()
        .zip(&groups)
        .map(|((.., number), group)| hogs(*number, group))
        .collect();
    let every: Vec<&Cgroup> = groups.iter().collect();
    settle();
    let kernels = rates(&every, Duration::from_secs(10));
    println!("  {kernels:.4?} CPUs with the kernel's scheduler");
    let steerer = attach();
    settle();
    are_near(&rates(&every, Duration::from_secs(10)), &wanted, 5.0);
    for (group, (_, quota, period, _)) in groups.iter().zip(of) {
        limit(group, quota / 2, period / 2);
    }
    std::thread::sleep(Duration::from_secs(1));
    are_near(&rates(&every, Duration::from_secs(10)), &wanted, 5.0);
    still_there(&steerer);
}
