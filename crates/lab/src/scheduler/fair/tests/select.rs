// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where woken tasks wait.

use super::*;

/// Two sockets of one cache with two cores of two threads: pCPUs 0 to 3 and 4 to 7; each busy one runs a task.
fn machine(busy: &[u32]) -> Fair {
    let topology = Topology::new(2, 1, 2, 2).expect("eight pCPUs");
    let mut fair = Fair::new(Version::Cfs5_6, Options::default(), topology, MS);
    for cpu in busy {
        let task = fair.add_task(ROOT, 1024, Allowed::Only(vec![Cpu(*cpu)]), None);
        fair.enqueue(0, task, Cpu(*cpu), Enqueue::New);
        assert_eq!(fair.pick_next(0, Cpu(*cpu)), Some(task));
    }
    fair
}

/// A task that ran on that pCPU and sleeps.
fn slept_on(fair: &mut Fair, cpu: u32, allowed: Allowed) -> Task {
    let task = fair.add_task(ROOT, 1024, allowed, None);
    fair.tasks[task.index()].started = true;
    fair.stand_on(task, Cpu(cpu));
    task
}

#[test]
fn a_woken_task_goes_where_it_is_cheap() {
    let any = || Allowed::All;
    let cases = [
        ("where it was, if that is idle", vec![1], 0, None, any(), 0),
        (
            "to its idle waker, if its own pCPU is busy",
            vec![0, 1],
            0,
            Some(3),
            any(),
            3,
        ),
        (
            "to an idle core of its cache before an idle thread",
            vec![0, 2],
            2,
            None,
            any(),
            3,
        ),
        ("an idle core first", vec![1, 4], 1, None, any(), 2),
        (
            "not to another cache, if its own is full",
            vec![0, 1, 2, 3],
            0,
            None,
            any(),
            0,
        ),
        (
            "to a waker in another cache, if fewer run there",
            vec![0, 1, 2, 3],
            0,
            Some(5),
            any(),
            5,
        ),
        (
            "where it may",
            vec![0],
            0,
            None,
            Allowed::Only(vec![Cpu(0), Cpu(1)]),
            1,
        ),
        (
            "where it must",
            vec![6],
            6,
            Some(0),
            Allowed::Only(vec![Cpu(6)]),
            6,
        ),
    ];
    for (what, busy, previous, waker, allowed, expected) in cases {
        let mut fair = machine(&busy);
        let task = slept_on(&mut fair, previous, allowed);
        assert_eq!(fair.select(task, waker.map(Cpu)), Cpu(expected), "{what}");
    }
}

#[test]
fn new_tasks_spread() {
    let mut fair = machine(&[]);
    for expected in [0, 1, 2, 3, 4, 5, 6, 7, 0, 1] {
        let task = fair.add_task(ROOT, 1024, Allowed::All, None);
        let cpu = fair.select_cpu(0, task, None);
        assert_eq!(cpu, Cpu(expected));
        fair.enqueue(0, task, cpu, Enqueue::New);
    }
}

#[test]
fn cache_hot_tasks_stay_but_for_a_pcpu_that_was_told_to_look() {
    let topology = Topology::flat(2).expect("two pCPUs");
    let mut fair = Fair::new(Version::Eevdf7_2, Options::default(), topology, 4 * MS);
    let [first, second] = [0; 2].map(|_| task(&mut fair, ROOT));
    fair.put_previous(4 * MS, CPU, true);
    assert_eq!(fair.pick_next(4 * MS, CPU), Some(second));
    assert_eq!(
        fair.pick_next(4 * MS + 100, Cpu(1)),
        None,
        "the first one ran just now"
    );
    fair.tick(4 * MS + 100, CPU);
    assert_eq!(fair.take_kick(), Some(Cpu(1)));
    assert_eq!(fair.pick_next(4 * MS + 100, Cpu(1)), Some(first));
}
