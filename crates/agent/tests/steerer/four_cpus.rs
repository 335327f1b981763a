// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same on more CPUs than two: weights, places that overlap, CPUs that go, a VM of eight vCPUs; and where each CPU has a
//! last-level cache of its own, and so a queue. In boots of their own.

use std::time::Duration;
use unspin_testbed::check;

use super::{
    host::{Busy, are_close, counter, pin, set_online, shares, still_there},
    hostile::attaching::set_class,
    observer_vms::run_for,
    vms::{fighting, steer},
};

/// Tasks whose places overlap have the same time over 2 s.
fn are_equal(tasks: &[&Busy]) {
    let measured = shares(tasks, Duration::from_millis(2_000));
    let (least, most) = (
        measured.iter().copied().fold(f64::MAX, f64::min),
        measured.iter().copied().fold(0.0, f64::max),
    );
    println!("  overlapping places: {least:.3} to {most:.3} s");
    assert!(most / least < 1.2, "{measured:?}");
}

check!(FOUR_CPUS: tasks_share_four_cpus);
fn tasks_share_four_cpus() {
    let steerer = steer("loan", |_| ());
    // Weights of the kernel's table for nice 3 and -2, sched_prio_to_weight[], beside six of nice 0.
    let tasks: Vec<Busy> = [0, 0, 0, 0, 0, 0, 3, -2]
        .map(|nice| Busy::start(nice, None))
        .into();
    let all: Vec<&Busy> = tasks.iter().collect();
    let measured = shares(&all, Duration::from_millis(2_000));
    are_close(
        &measured,
        &[
            1024.0, 1024.0, 1024.0, 1024.0, 1024.0, 1024.0, 526.0, 1586.0,
        ],
    );
    drop(tasks);

    let tasks: Vec<Busy> = (0..8).map(|_| Busy::start(0, None)).collect();
    // Four on CPUs 2 and 3, four anywhere: equal, by leaving 2 and 3 to those.
    for task in &tasks[..4] {
        pin(task.id(), &[2, 3]);
    }
    let all: Vec<&Busy> = tasks.iter().collect();
    are_equal(&all);

    for cpu in [3, 2] {
        set_online(cpu, false);
    }
    std::thread::sleep(Duration::from_millis(200));
    let measured = shares(&all, Duration::from_millis(800));
    assert!(measured.iter().all(|time| *time > 0.1), "{measured:?}");
    for cpu in [2, 3] {
        set_online(cpu, true);
    }
    still_there(&steerer);
}

check!(FOUR_CPUS: a_loan_drains_a_convoy_of_eight);
/// 1 VM x 8 vCPUs on 4 CPUs.
fn a_loan_drains_a_convoy_of_eight() {
    let steerer = steer("refuse-yields", |_| ());
    let operations = || -> u64 {
        let report = run_for(250, vec![fighting(8)]);
        let vcpus = report.vms.iter().flat_map(|vm| &vm.vcpus);
        vcpus.map(|vcpu| vcpu.statistics.operations).sum()
    };
    let without = operations();
    steerer
        .set_policies("loan".parse().expect("a policy"))
        .expect("at any time");
    let with = operations();
    still_there(&steerer);
    println!(
        "  {without} operations without loans, {with} with, {} loans",
        counter(&steerer, "lent")
    );
    assert!(with > 3 * without, "{with} with loans, {without} without");
}

check!(FOUR_CACHES: tasks_share_four_caches);
/// Ten tasks on four queues: none can have its share without tasks that move.
fn tasks_share_four_caches() {
    let steerer = steer("refuse-yields", |_| ());
    let tasks: Vec<Busy> = [0, 0, 0, 0, 0, 0, 0, 0, 3, -2]
        .map(|nice| Busy::start(nice, None))
        .into();
    let all: Vec<&Busy> = tasks.iter().collect();
    let measured = shares(&all, Duration::from_millis(8_000));
    let weights = [1024.0; 8].into_iter().chain([526.0, 1586.0]);
    are_close(&measured, &weights.collect::<Vec<f64>>());
    // It is left alone on its CPU again and again, and keeps what its domain was behind.
    let share =
        measured[9] / measured.iter().sum::<f64>() * (8.0 * 1024.0 + 526.0 + 1586.0) / 1586.0;
    println!("  the heaviest has {share:.4} of its share");
    assert!(share > 0.99, "{measured:?}");
    let moved = counter(&steerer, "taken_for_balance");
    println!("  {moved} tasks were taken for balance");
    // Four queues look once a tick of 4 ms.
    assert!((1..=2_000).contains(&moved), "{moved}");
    still_there(&steerer);
}

check!(FOUR_CACHES: an_idle_cache_takes_what_waits);
/// Eight tasks that could only be on one CPU may go anywhere: all CPUs work, and all tasks are equal. Over 4 s, since the clocks of
/// two caches may be two slices and a tick apart, 12 ms, at the beginning and at the end: 2.4 % of what a task has in a second.
fn an_idle_cache_takes_what_waits() {
    let steerer = steer("refuse-yields", |_| ());
    let tasks: Vec<Busy> = (0..8).map(|_| Busy::start(0, None)).collect();
    for task in &tasks {
        pin(task.id(), &[0]);
    }
    std::thread::sleep(Duration::from_millis(200));
    for task in &tasks {
        pin(task.id(), &[0, 1, 2, 3]);
    }
    std::thread::sleep(Duration::from_millis(100));
    let all: Vec<&Busy> = tasks.iter().collect();
    let measured = shares(&all, Duration::from_millis(4_000));
    are_close(&measured, &[1.0; 8]);
    let worked: f64 = measured.iter().sum();
    println!(
        "  {worked:.3} s of 16 worked, {} tasks were taken by idle CPUs",
        counter(&steerer, "taken_idle")
    );
    assert!(worked > 15.6, "{measured:?}");
    still_there(&steerer);
}

check!(FOUR_CACHES: who_may_use_two_caches_only_has_its_share);
/// Four tasks on the CPUs of one node, as libvirt places them, beside four anywhere: equal, by leaving that node to those.
fn who_may_use_two_caches_only_has_its_share() {
    let steerer = steer("refuse-yields", |_| ());
    let tasks: Vec<Busy> = (0..8).map(|_| Busy::start(0, None)).collect();
    for task in &tasks[..4] {
        pin(task.id(), &[2, 3]);
    }
    are_equal(&tasks.iter().collect::<Vec<&Busy>>());
    still_there(&steerer);
}

check!(FOUR_CACHES: who_is_stuck_beside_four_caches_shares);
/// One of ten tasks waits in the queue of its CPU, nine in those of the caches: 0.8 s of 2 for each. Where only these had clocks
/// that are compared, the CPU of the first one took no task of others, and it had 2 s.
fn who_is_stuck_beside_four_caches_shares() {
    let steerer = steer("refuse-yields", |_| ());
    let stuck = Busy::stuck();
    let others: Vec<Busy> = (0..9).map(|_| Busy::start(0, None)).collect();
    let all: Vec<&Busy> = others.iter().chain([&stuck]).collect();
    let measured = shares(&all, Duration::from_secs(2));
    println!("  of 2 s on four CPUs, the last one stuck: {measured:.3?} s");
    assert!(
        measured.iter().all(|time| (0.72..0.88).contains(time)),
        "{measured:?}"
    );
    still_there(&steerer);
}

check!(FOUR_CPUS: who_is_pushed_aside_goes_elsewhere);
/// A real-time hog takes one CPU after another: the task that runs there continues on one of the three others, now and not when
/// the hog leaves.
fn who_is_pushed_aside_goes_elsewhere() {
    let steerer = steer("loan,kernel-exit", |_| ());
    let tasks = [Busy::start(0, None), Busy::start(0, None)];
    let hog = Busy::start(0, None);
    set_class(hog.id() as i32, libc::SCHED_FIFO, 1);
    for round in 0..12 {
        pin(hog.id(), &[round % 4]);
        let measured = shares(&[&tasks[0], &tasks[1]], Duration::from_millis(200));
        println!("  hog on CPU {}: {measured:.3?} of 0.2 s", round % 4);
        assert!(measured.iter().all(|ran| *ran > 0.18), "{measured:?}");
    }
    still_there(&steerer);
}

check!(FOUR_CACHES: a_loan_goes_to_another_cache);
/// 1 VM x 8 vCPUs on four queues: the holder waits in another one than the waiter that lends.
fn a_loan_goes_to_another_cache() {
    a_loan_drains_a_convoy_of_eight();
}
