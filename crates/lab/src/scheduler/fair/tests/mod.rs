// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single rules, starting from virtual times that the test sets.

mod select;
mod yielding;

use super::rules::Options;
use super::*;
use crate::ids::Group;
use crate::scheduler::{Enqueue, HostScheduler, YieldTo};

const MS: u64 = 1_000_000;
const MILLISECOND: i64 = 1_000_000;
const CPU: Cpu = Cpu(0);
const ROOT: Group = Group(0);

const CFS: [Version; 4] = [
    Version::Cfs3_5,
    Version::Cfs3_19,
    Version::Cfs4_13,
    Version::Cfs5_6,
];
const EEVDF: [Version; 4] = [
    Version::Eevdf6_6,
    Version::Eevdf6_12,
    Version::Eevdf6_19,
    Version::Eevdf7_2,
];

fn with(version: Version, options: Options) -> Fair {
    Fair::new(
        version,
        options,
        Topology::flat(1).expect("one pCPU"),
        4 * MS,
    )
}

fn plain(version: Version) -> Fair {
    with(version, Options::default())
}

/// Adds a task to that group; the first one runs from time 0 on, the others wait.
fn task(fair: &mut Fair, group: Group) -> Task {
    let task = fair.add_task(group, 1024, Allowed::All, None);
    fair.enqueue(0, task, CPU, Enqueue::New);
    if fair.cpus[0].current.is_none() {
        assert_eq!(fair.pick_next(0, CPU), Some(task));
    }
    task
}

fn entity(fair: &Fair, task: Task) -> u32 {
    fair.tasks[task.index()].entity
}

/// Sets an entity's virtual runtime, with a deadline a slice later.
fn set(fair: &mut Fair, entity: u32, vruntime: i64) {
    let queue = fair.entities[entity as usize].queue as usize;
    let sorted = fair.queues[queue].current != entity;
    if sorted {
        fair.remove(entity);
    }
    let slice_ns = fair.tunables.base_slice_ns as i64;
    fair.entities[entity as usize].vruntime = vruntime;
    fair.entities[entity as usize].deadline = vruntime + slice_ns;
    fair.entities[entity as usize].protected_until = vruntime + slice_ns;
    if sorted {
        fair.insert(entity);
    }
}

fn set_task(fair: &mut Fair, task: Task, vruntime: i64) {
    set(fair, entity(fair, task), vruntime);
}

fn vruntime(fair: &Fair, task: Task) -> i64 {
    fair.entities[entity(fair, task) as usize].vruntime
}

fn next(fair: &mut Fair, now_ns: u64) -> Option<Task> {
    fair.put_previous(now_ns, CPU, true);
    fair.pick_next(now_ns, CPU)
}

#[test]
fn tunables_grow_with_the_logarithm_of_pcpus() {
    for (cpus, factor) in [(1, 1), (2, 2), (3, 2), (4, 3), (8, 4), (80, 4)] {
        let cfs = Tunables::of(Version::Cfs5_6, cpus, MS);
        assert_eq!(cfs.latency_ns, factor * 6 * MS);
        assert_eq!(cfs.least_granularity_ns, factor * 750_000);
        assert_eq!(cfs.wakeup_granularity_ns, factor * MS);
        assert_eq!(
            Tunables::of(Version::Eevdf6_12, cpus, MS).base_slice_ns,
            factor * 750_000
        );
        assert_eq!(
            Tunables::of(Version::Eevdf7_2, cpus, MS).base_slice_ns,
            factor * 700_000
        );
    }
}

#[test]
fn virtual_time_passes_inversely_to_weight() {
    for (weight, shift) in [
        (1024, 0),
        (1024, 10),
        (335, 0),
        (335, 10),
        (88_761, 10),
        (15, 0),
        (2, 0),
    ] {
        let load = Load::new(weight << shift, shift);
        let exact = 1024.0 * 1e9 / weight as f64;
        let given = load.to_virtual(1_000_000_000) as f64;
        assert!(
            (given / exact - 1.0).abs() < 1e-4,
            "weight {weight}: {given} of {exact}"
        );
        let back = load.to_real(load.to_virtual(1_000_000_000), shift) as f64;
        assert!((back / 1e9 - 1.0).abs() < 1e-4, "weight {weight}: {back}");
    }
}

#[test]
fn slices_of_cfs_are_parts_of_the_period_at_every_level() {
    for version in CFS {
        let mut fair = plain(version);
        let group = fair.add_group(ROOT, 1024);
        let root = task(&mut fair, ROOT);
        let inner: Vec<Task> = (0..2).map(|_| task(&mut fair, group)).collect();
        // Two entities at the root, so half of 6 ms; two in the group, so a quarter.
        assert_eq!(fair.cfs_slice_ns(entity(&fair, root)), 3 * MS);
        assert_eq!(fair.cfs_slice_ns(entity(&fair, inner[0])), 3 * MS / 2);
        for _ in 0..8 {
            task(&mut fair, group);
        }
        // With ten, the group's own period is 10 x 0.75 ms, of which it has half at the root.
        let slice_ns = fair.cfs_slice_ns(entity(&fair, inner[0]));
        assert_eq!(slice_ns, 10 * 750_000 / 10 / 2);
    }
}

#[test]
fn cfs_debits_new_tasks_and_credits_sleepers() {
    for version in CFS {
        let mut fair = plain(version);
        let current = task(&mut fair, ROOT);
        set_task(&mut fair, current, 50 * MILLISECOND);
        fair.tick(0, CPU);
        fair.advance_least_vruntime(0);
        // It is the second of two: after half of 6 ms.
        let new = task(&mut fair, ROOT);
        assert_eq!(vruntime(&fair, new), 53 * MILLISECOND, "{version:?}");
        for (slept_at, wakes_at) in [(10, 47), (48, 48), (52, 52)] {
            let sleeper = fair.add_task(ROOT, 1024, Allowed::All, None);
            fair.tasks[sleeper.index()].started = true;
            fair.stand_on(sleeper, CPU);
            let id = entity(&fair, sleeper) as usize;
            fair.entities[id].vruntime = slept_at * MILLISECOND;
            fair.enqueue(0, sleeper, CPU, Enqueue::Wakeup);
            assert_eq!(
                vruntime(&fair, sleeper),
                wakes_at * MILLISECOND,
                "{version:?}"
            );
        }
    }
}

#[test]
fn a_woken_task_preempts_beyond_the_granularity() {
    for version in CFS {
        for (ahead, preempts) in [(-1, false), (MILLISECOND, false), (MILLISECOND + 1, true)] {
            let mut fair = plain(version);
            let current = task(&mut fair, ROOT);
            let woken = task(&mut fair, ROOT);
            set_task(&mut fair, woken, 10 * MILLISECOND);
            set_task(&mut fair, current, 10 * MILLISECOND + ahead);
            assert_eq!(
                fair.wakeup_preempts(0, CPU, woken),
                preempts,
                "{version:?}: {ahead} ns ahead"
            );
        }
    }
}

#[test]
fn a_protected_task_is_not_preempted_while_it_is_eligible() {
    for version in EEVDF {
        let mut fair = plain(version);
        let current = task(&mut fair, ROOT);
        let woken = task(&mut fair, ROOT);
        fair.tasks[woken.index()].new = false;
        set_task(&mut fair, current, 0);
        set_task(&mut fair, woken, 0);
        let early = entity(&fair, woken);
        fair.remove(early);
        fair.entities[early as usize].deadline = 1;
        fair.insert(early);
        assert!(
            !fair.wakeup_preempts(0, CPU, woken),
            "{version:?}: as owed as the other, but protected"
        );
        let id = entity(&fair, current) as usize;
        fair.entities[id].vruntime = 1000;
        assert!(
            fair.wakeup_preempts(0, CPU, woken),
            "{version:?}: the current one ran more than its share"
        );
    }
}

#[test]
fn lag_is_kept_over_sleep() {
    for version in EEVDF {
        let mut fair = plain(version);
        let [sleeper, other, third] = [0; 3].map(|_| task(&mut fair, ROOT));
        for (task, vruntime) in [
            (sleeper, 10_000_000),
            (other, 10_900_000),
            (third, 10_300_000),
        ] {
            set_task(&mut fair, task, vruntime);
        }
        // The mean is 10.4 ms: its lag is 0.4 ms.
        fair.put_previous(0, CPU, false);
        assert_eq!(
            fair.entities[entity(&fair, sleeper) as usize].lag,
            400_000,
            "{version:?}"
        );
        fair.pick_next(0, CPU);
        fair.enqueue(0, sleeper, CPU, Enqueue::Wakeup);
        let lag = fair.mean_vruntime(0) - vruntime(&fair, sleeper);
        assert!((lag - 400_000).abs() <= 2, "{version:?}: {lag}");
    }
}

#[test]
fn who_sleeps_ahead_of_its_share_waits_in_the_queue_since_6_12() {
    for version in EEVDF {
        let mut fair = plain(version);
        let [sleeper, other] = [0; 2].map(|_| task(&mut fair, ROOT));
        set_task(&mut fair, other, 10 * MILLISECOND);
        set_task(&mut fair, sleeper, 12 * MILLISECOND);
        fair.put_previous(0, CPU, false);
        assert_eq!(fair.pick_next(0, CPU), Some(other));
        let delayed = version >= Version::Eevdf6_12;
        assert_eq!(
            fair.entities[entity(&fair, sleeper) as usize].delayed,
            delayed,
            "{version:?}"
        );
        assert_eq!((fair.runnable(CPU), fair.cpu_of(sleeper)), (1, None));
        // The other entity passes it: then its lag is 0, and it has left the queue at the next pick.
        assert_eq!(next(&mut fair, 5 * MS), Some(other));
        assert_eq!(fair.queues[0].queued, 1, "{version:?}");
        if delayed {
            assert_eq!(
                fair.entities[entity(&fair, sleeper) as usize].lag,
                0,
                "{version:?}"
            );
        }
    }
}

#[test]
fn a_group_keeps_its_slice_over_a_switch_inside_it_since_3_15() {
    for version in CFS {
        let mut fair = plain(version);
        let group = fair.add_group(ROOT, 1024);
        let [first, _second] = [0; 2].map(|_| task(&mut fair, group));
        let around = fair.entities[entity(&fair, first) as usize].parent as usize;
        next(&mut fair, 7 * MS);
        let ran_ns = fair.entities[around].sum_exec_ns - fair.entities[around].picked_exec_ns;
        assert_eq!(
            ran_ns,
            if version == Version::Cfs3_5 {
                0
            } else {
                7 * MS
            },
            "{version:?}"
        );
    }
}

#[test]
fn who_lost_its_protection_is_rescheduled_while_it_is_not_eligible_in_6_12() {
    for version in EEVDF {
        for (ahead, rescheduled) in [
            (-1000, version >= Version::Eevdf6_19),
            (1000, version >= Version::Eevdf6_12),
        ] {
            let mut fair = plain(version);
            let [current, other] = [0; 2].map(|_| task(&mut fair, ROOT));
            set_task(&mut fair, other, 10 * MILLISECOND);
            set_task(&mut fair, current, 10 * MILLISECOND + ahead);
            let id = entity(&fair, current) as usize;
            fair.entities[id].protected_until = 0;
            assert_eq!(
                fair.tick(10, CPU),
                rescheduled,
                "{version:?}, {ahead} ns ahead of the other"
            );
        }
    }
}
