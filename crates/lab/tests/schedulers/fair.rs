// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU shares and slices of the fair class, by version.

use crate::driver::{Host, Load, MILLISECOND};
use unspin_lab::{
    ids::{Cpu, Group, Task},
    scheduler::Allowed,
    topology::Topology,
};

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

fn busy(host: &mut Host, group: Group, weight: u32, allowed: Allowed) -> Task {
    let task = host.scheduler.add_task(group, weight, allowed, None);
    host.start(task, Load::Busy);
    task
}

/// Shares of `all_ns` are within 0.5 % of the expected ones, given in thousandths.
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
        let tasks = weights.map(|weight| busy(&mut host, ROOT, weight, Allowed::All));
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
        .map(|_| busy(host, group, 1024, Allowed::All))
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
            .map(|(group, cpu)| busy(&mut host, group, 1024, on(cpu)));
        host.run_until(60_000 * MILLISECOND);
        assert_shares(name, &host, &tasks, &[1, 1, 2, 2]);
    }
}

/// Lengths of the periods in which a task ran, without the first and last two, ns.
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
        // One pCPU: a latency of 6 ms for three tasks is 2 ms each; the first tick after that ends the slice.
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

#[test]
fn nobody_starves() {
    // Twenty tasks of very different weights, two of which sleep often: the longest wait is bounded by the lightest
    // task's share of a round.
    for name in FAIR {
        let mut host = Host::new(name, one_cpu());
        let mut tasks: Vec<Task> = [1024, 15, 9548]
            .map(|weight| busy(&mut host, ROOT, weight, Allowed::All))
            .to_vec();
        for _ in 0..2 {
            let task = host.scheduler.add_task(ROOT, 1024, Allowed::All, None);
            host.start(
                task,
                Load::Cycles {
                    runs_ns: 300_000,
                    sleeps_ns: 700_000,
                },
            );
            tasks.push(task);
        }
        host.run_until(20_000 * MILLISECOND);
        // 15 of 10,587 and more: each slice of 4 ms is followed by at most 4 ms x weights / 15 of others.
        let bound_ns = 4 * MILLISECOND * (1024 + 15 + 9548 + 2048) / 15 + 100 * MILLISECOND;
        for task in tasks {
            let runs: Vec<(u64, u64)> = host
                .log
                .iter()
                .filter(|s| s.task == task)
                .map(|s| (s.start_ns, s.end_ns))
                .collect();
            let longest = runs
                .windows(2)
                .map(|pair| pair[1].0 - pair[0].1)
                .max()
                .expect("it ran twice");
            assert!(
                longest <= bound_ns,
                "{name}: {task:?} waited {} ms",
                longest / MILLISECOND
            );
        }
    }
}

#[test]
fn idle_pcpus_take_work() {
    // Eight tasks that all start on the queue of one of four pCPUs spread until each pCPU has two.
    for name in FAIR {
        let topology = Topology::new(2, 1, 2, 1).expect("four pCPUs");
        let mut host = Host::new(name, topology);
        let tasks = burn_in(&mut host, ROOT, 8);
        host.run_until(10_000 * MILLISECOND);
        assert_shares(name, &host, &tasks, &[1; 8]);
        let all: u64 = tasks.iter().map(|task| host.ran_ns(*task)).sum();
        assert!(
            all >= 39_900 * MILLISECOND,
            "{name}: the four pCPUs were busy for {} ms",
            all / MILLISECOND
        );
    }
}

#[test]
fn a_pcpu_that_falls_idle_takes_a_waiting_task() {
    // Three tasks that need three quarters of a pCPU each, on two pCPUs.
    for name in FAIR {
        let mut host = Host::new(name, Topology::flat(2).expect("two pCPUs"));
        let tasks: Vec<Task> = (0..3)
            .map(|_| {
                let task = host.scheduler.add_task(ROOT, 1024, Allowed::All, None);
                let (runs_ns, sleeps_ns) = (12 * MILLISECOND, 4 * MILLISECOND);
                host.start(task, Load::Cycles { runs_ns, sleeps_ns });
                task
            })
            .collect();
        host.run_until(5_000 * MILLISECOND);
        let all: u64 = tasks.iter().map(|task| host.ran_ns(*task)).sum();
        assert!(
            all >= 9_500 * MILLISECOND,
            "{name}: {} ms of 10,000 were used",
            all / MILLISECOND
        );
        let moved = tasks.iter().any(|task| {
            let mut cpus = host.log.iter().filter(|s| s.task == *task).map(|s| s.cpu);
            let first = cpus.next();
            cpus.any(|cpu| Some(cpu) != first)
        });
        assert!(moved, "{name}: nobody ever moved");
    }
}

#[test]
fn balance_scheduling_keeps_siblings_apart() {
    // Three VMs of four on four pCPUs, woken and put to sleep at different times: with balance no queue has two of a
    // VM.
    let mut together = [0_u64; 2];
    for (index, name) in ["cfs-5.6", "cfs-5.6+balance"].into_iter().enumerate() {
        let mut host = Host::new(name, Topology::flat(4).expect("four pCPUs"));
        for task in 0..12 {
            let id = host
                .scheduler
                .add_task(ROOT, 1024, Allowed::All, Some(task / 4));
            let runs_ns = (3 + u64::from(task)) * 700_000;
            host.start(
                id,
                Load::Cycles {
                    runs_ns,
                    sleeps_ns: 900_000,
                },
            );
        }
        for step in 1..5_000 {
            host.run_until(step * MILLISECOND);
            let places: Vec<_> = (0..12)
                .map(|task| host.scheduler.cpu_of(Task(task)).map(|cpu| (task / 4, cpu)))
                .collect();
            let pairs = (0..12).flat_map(|one| (0..one).map(move |other| (one, other)));
            together[index] += pairs
                .filter(|(one, other)| places[*one].is_some() && places[*one] == places[*other])
                .count() as u64;
        }
    }
    assert!(together[0] > 0, "without balance siblings meet");
    assert_eq!(together[1], 0, "with it they never do");
}

#[test]
fn the_slice_timer_of_7_2_ends_slices_between_ticks() {
    let mut host = Host::new("eevdf-7.2", Topology::flat(8).expect("eight pCPUs"));
    let tasks: Vec<Task> = (0..3)
        .map(|_| busy(&mut host, ROOT, 1024, Allowed::Only(vec![Cpu(3)])))
        .collect();
    host.run_until(2_000 * MILLISECOND);
    for task in tasks {
        let lengths = stretches(&host, task);
        let exact = lengths.iter().filter(|ns| **ns == 2_800_000).count();
        assert!(
            exact * 10 >= lengths.len() * 9,
            "2.8 ms expected of {lengths:?}"
        );
    }
}
