// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU shares and slices of the fair class, per version.

mod scheduler_driver;

use scheduler_driver::{Host, Load, MILLISECOND};
use unspin_sim::ids::{Cpu, Group, Task};
use unspin_sim::scheduler::Allowed;
use unspin_sim::topology::Topology;

const FAIR: [&str; 8] = [
    "cfs-3.5",
    "cfs-3.19",
    "cfs-4.13",
    "cfs-5.6",
    "eevdf-6.6",
    "eevdf-6.12",
    "eevdf-6.19",
    "eevdf-7.2",
];

const ROOT: Group = Group(0);

fn one_cpu() -> Topology {
    Topology::flat(1).expect("one pCPU")
}

fn burn(host: &mut Host, group: Group, weight: u32, allowed: Allowed) -> Task {
    let task = host.scheduler.add_task(group, weight, allowed, None);
    host.start(task, Load::Burns);
    task
}

/// Shares of `all_ns` within 0.5 % of what is expected, in thousandths of all.
fn assert_shares(name: &str, host: &Host, tasks: &[Task], expected: &[u64]) {
    let all: u64 = tasks.iter().map(|task| host.ran_ns(*task)).sum();
    let weights: u64 = expected.iter().sum();
    for (task, weight) in tasks.iter().zip(expected) {
        let share = host.ran_ns(*task) as f64 / all as f64;
        let expected = *weight as f64 / weights as f64;
        assert!(
            (share / expected - 1.0).abs() < 0.005,
            "{name}: task {task:?} got {share:.4} of {expected:.4}"
        );
    }
}

#[test]
fn shares_follow_nice_levels() {
    // sched_prio_to_weight[] of nice -5, 0, 0, 5 (kernel/sched/core.c).
    let weights = [3121, 1024, 1024, 335];
    for name in FAIR {
        let mut host = Host::new(name, one_cpu());
        let tasks = weights.map(|weight| burn(&mut host, ROOT, weight, Allowed::All));
        host.run_until(60_000 * MILLISECOND);
        assert_shares(name, &host, &tasks, &weights.map(u64::from));
    }
}

#[test]
fn shares_follow_nested_groups() {
    for name in FAIR {
        let mut host = Host::new(name, one_cpu());
        let outer = host.scheduler.add_group(ROOT, 2048);
        let inner = host.scheduler.add_group(outer, 1024);
        let deep = burn_in(&mut host, inner, 3);
        let beside = burn_in(&mut host, outer, 1);
        let root = burn_in(&mut host, ROOT, 1);
        host.run_until(120_000 * MILLISECOND);
        // The root divides 2 : 1, the outer group 1 : 1, the inner one by three: of 6, 1 1 1 3 ... of 18.
        let tasks = [deep[0], deep[1], deep[2], beside[0], root[0]];
        assert_shares(name, &host, &tasks, &[2, 2, 2, 6, 6]);
    }
}

fn burn_in(host: &mut Host, group: Group, count: u32) -> Vec<Task> {
    (0..count)
        .map(|_| burn(host, group, 1024, Allowed::All))
        .collect()
}

#[test]
fn a_group_has_its_shares_once_for_all_cpus() {
    // A group with a task pinned to each of two pCPUs, beside a task of the root on each: half of 1024 on each, so a third.
    for name in FAIR {
        let mut host = Host::new(name, Topology::flat(2).expect("two pCPUs"));
        let group = host.scheduler.add_group(ROOT, 1024);
        let on = |cpu| Allowed::Only(vec![Cpu(cpu)]);
        let tasks = [(group, 0), (group, 1), (ROOT, 0), (ROOT, 1)]
            .map(|(group, cpu)| burn(&mut host, group, 1024, on(cpu)));
        host.run_until(60_000 * MILLISECOND);
        assert_shares(name, &host, &tasks, &[1, 1, 2, 2]);
    }
}

/// Lengths of the stretches of a task, without the first and last two, ns.
fn stretches(host: &Host, task: Task) -> Vec<u64> {
    let all: Vec<u64> = host
        .log
        .iter()
        .filter(|s| s.task == task)
        .map(|s| s.end_ns - s.start_ns)
        .collect();
    all[2..all.len() - 2].to_vec()
}

#[test]
fn slices_are_what_the_version_prescribes() {
    let cases = [
        // One pCPU: latency 6 ms over three tasks is 2 ms; the tick that finds more than that is the first after it.
        ("cfs-5.6+hz=1000", 3, 3),
        // Twelve tasks: the period is 12 x 0.75 ms, each gets 0.75 ms, ended by the next tick.
        ("cfs-5.6+hz=1000", 12, 1),
        // At 250 Hz nothing is finer than 4 ms.
        ("cfs-3.5", 3, 4),
        ("cfs-4.13", 12, 4),
        // The base slice is 0.75 or 0.70 ms for one pCPU: one tick.
        ("eevdf-6.6+hz=1000", 3, 1),
        ("eevdf-6.12", 3, 4),
        ("eevdf-6.19", 3, 4),
    ];
    for (name, tasks, slice_ms) in cases {
        let mut host = Host::new(name, one_cpu());
        let tasks = burn_in(&mut host, ROOT, tasks);
        host.run_until(2_000 * MILLISECOND);
        for task in tasks {
            let lengths = stretches(&host, task);
            let typical = lengths
                .iter()
                .filter(|ns| **ns == slice_ms * MILLISECOND)
                .count();
            assert!(
                typical * 10 >= lengths.len() * 9,
                "{name}: {slice_ms} ms expected of {lengths:?}"
            );
        }
    }
}
