// SPDX-License-Identifier: MIT OR Apache-2.0
//! Xen's credit scheduler, gang scheduling, and the names of schedulers.

use crate::driver::{Host, Load, MILLISECOND};
use unspin_lab::{
    ids::{Cpu, Group, Task},
    scheduler::{Allowed, Enqueue, YieldTo, from_name, names::known_names},
    topology::Topology,
};

const CPU: Cpu = Cpu(0);
const ROOT: Group = Group(0);

fn add(host: &mut Host, group: Group, family: Option<u32>, load: Load) -> Task {
    let task = host.scheduler.add_task(group, 1024, Allowed::All, family);
    host.start(task, load);
    task
}

#[test]
fn credits_follow_the_weights_of_domains() {
    // A domain of weight 2,048 with four vCPUs beside one of 1,024 with two, on two pCPUs: the domain's weight decides.
    let mut host = Host::new("credit", Topology::flat(2).expect("two pCPUs"));
    let groups = [2048, 1024].map(|weight| host.scheduler.add_group(ROOT, weight));
    let vcpus: Vec<(u32, Task)> = [0, 0, 0, 0, 1, 1]
        .map(|domain| {
            (
                domain,
                add(&mut host, groups[domain as usize], Some(domain), Load::Busy),
            )
        })
        .to_vec();
    host.run_until(120_000 * MILLISECOND);
    let of = |domain: u32| {
        vcpus
            .iter()
            .filter(|(of, _)| *of == domain)
            .map(|(_, task)| host.ran_ns(*task))
            .sum::<u64>()
    };
    let share = of(0) as f64 / (of(0) + of(1)) as f64;
    assert!((share * 1.5 - 1.0).abs() < 0.005, "{share} of two thirds");
}

#[test]
fn slices_of_credit_are_30_ms() {
    let mut host = Host::new("credit", Topology::flat(1).expect("one pCPU"));
    let tasks: Vec<Task> = (0..3)
        .map(|domain| add(&mut host, ROOT, Some(domain), Load::Busy))
        .collect();
    host.run_until(10_000 * MILLISECOND);
    for stretch in &host.log {
        assert_eq!((stretch.end_ns - stretch.start_ns) % (30 * MILLISECOND), 0);
    }
    for task in tasks {
        assert!((3_300..=3_360).contains(&(host.ran_ns(task) / MILLISECOND)));
    }
}

#[test]
fn who_wakes_with_credits_is_boosted_until_the_next_tick() {
    let mut host = Host::new("credit", Topology::flat(1).expect("one pCPU"));
    let cpu_hog = add(&mut host, ROOT, Some(0), Load::Busy);
    let sleeper = add(&mut host, ROOT, Some(1), Load::Sleeps);
    host.wake_as(sleeper, None, Enqueue::New);
    assert_eq!(
        host.current[0],
        Some(cpu_hog),
        "a new vCPU is UNDER as well"
    );
    host.run_until(45 * MILLISECOND);
    host.sleep(CPU);
    assert_eq!(host.current[0], Some(cpu_hog));
    host.run_until(52 * MILLISECOND);
    host.wake(sleeper, None);
    assert_eq!(host.current[0], Some(sleeper), "BOOST preempts UNDER");
    // It runs over a tick: then it is UNDER, and no longer preempts others that are.
    host.run_until(61 * MILLISECOND);
    host.reschedule(CPU);
    assert_eq!(host.current[0], Some(cpu_hog));
}

#[test]
fn a_pcpu_whose_next_has_no_credits_steals() {
    // Three vCPUs on two pCPUs: none may wait while a pCPU is idle, and each gets two thirds.
    let mut host = Host::new("credit", Topology::flat(2).expect("two pCPUs"));
    let tasks: Vec<Task> = (0..3)
        .map(|domain| add(&mut host, ROOT, Some(domain), Load::Busy))
        .collect();
    host.run_until(30_000 * MILLISECOND);
    for task in tasks {
        let share = host.ran_ns(task) as f64 / (20_000 * MILLISECOND) as f64;
        assert!(
            (share - 1.0).abs() < 0.01,
            "{task:?} got {share} of its share"
        );
    }
}

#[test]
fn the_target_of_a_directed_yield_runs_before_its_like() {
    let mut host = Host::new("credit", Topology::flat(2).expect("two pCPUs"));
    let tasks: Vec<Task> = (0..6)
        .map(|task| add(&mut host, ROOT, Some(task / 3), Load::Busy))
        .collect();
    // Before the first accounting all are UNDER: the target runs next, wherever it waited.
    host.run_until(5 * MILLISECOND);
    for cpu in [Cpu(0), Cpu(1)] {
        let waits = |task: &&Task| !host.current.contains(&Some(**task));
        let target = *tasks.iter().rev().find(waits).expect("four wait");
        assert_eq!(host.yield_to(cpu, target), YieldTo::Yielded);
        assert_eq!(host.current[cpu.index()], Some(target));
    }
    let running = host.current[1].expect("somebody runs");
    assert_eq!(host.yield_to(CPU, running), YieldTo::Refused);
}

#[test]
fn two_that_yield_to_each_other_do_not_starve_a_third() {
    let mut host = Host::new("credit", Topology::flat(1).expect("one pCPU"));
    let [one, other, third] =
        [0, 0, 1].map(|domain| add(&mut host, ROOT, Some(domain), Load::Busy));
    for step in 1..20_000 {
        host.run_until(step * MILLISECOND / 10);
        let target = if host.current[0] == Some(one) {
            other
        } else {
            one
        };
        if host.current[0] != Some(third) {
            assert_eq!(host.yield_to(CPU, target), YieldTo::Yielded);
        }
    }
    let share = host.ran_ns(third) as f64 / host.now_ns as f64;
    assert!(share > 0.4, "it got {share} of its half");
}

/// The tasks that run at a time, by pCPU.
fn ran_at(host: &Host, at_ns: u64) -> Vec<Task> {
    let mut running: Vec<(Cpu, Task)> = host
        .log
        .iter()
        .filter(|s| s.start_ns <= at_ns && at_ns < s.end_ns)
        .map(|s| (s.cpu, s.task))
        .collect();
    running.sort();
    running.into_iter().map(|(_, task)| task).collect()
}

#[test]
fn a_gang_runs_at_the_same_time() {
    let mut host = Host::new("gang", Topology::flat(4).expect("four pCPUs"));
    // Two VMs of four, one of two: three rows.
    let families = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2];
    for family in families {
        host.scheduler
            .add_task(ROOT, 1024, Allowed::All, Some(family));
    }
    for task in 0..families.len() as u32 {
        host.start(Task(task), Load::Busy);
    }
    host.run_until(1_000 * MILLISECOND);
    for slot in 1..99 {
        let at_ns = slot * 10 * MILLISECOND + 5 * MILLISECOND;
        let running = ran_at(&host, at_ns);
        let expected: Vec<u32> = match slot % 3 {
            0 => vec![0, 1, 2, 3],
            1 => vec![4, 5, 6, 7],
            // The free places of the row are given to the next row's tasks.
            _ => vec![8, 9, 2, 3],
        };
        assert_eq!(
            running,
            expected.into_iter().map(Task).collect::<Vec<_>>(),
            "slot {slot}"
        );
    }
    let running = host.current[0].expect("somebody runs");
    let other = Task((running.0 + 1) % 4);
    assert_eq!(
        host.scheduler.yield_to(host.now_ns, CPU, other),
        YieldTo::Refused
    );
}

#[test]
fn names_that_make_no_sense_are_refused_with_what_there_is() {
    let error = |name: &str| match from_name(name, Topology::flat(1).expect("one pCPU"), 1) {
        Ok(_) => panic!("{name} is accepted"),
        Err(error) => error.to_string(),
    };
    for name in known_names() {
        assert!(error("cfs").contains(name));
    }
    assert!(error("cfs-5.6+turbo").contains("+debooster=paper"));
    assert!(error("cfs-5.6+lag-credit").contains("only EEVDF"));
    assert!(error("eevdf-6.6+lag-credit").contains("eevdf-6.19"));
    assert!(error("credit+balance").contains("no options"));
    assert!(error("gang+debooster=paper").contains("slots"));
    assert!(error("gang+slot-ms=0").contains("1 to 1000 ms"));
    assert!(error("eevdf-7.2+hz=1").contains("1000 Hz"));
    assert!(error("").contains("known are cfs-3.5"));
    for name in [
        "cfs-3.19+balance+debooster=paper",
        "eevdf-7.2+lag-credit+hz=1000",
        "gang+slot-ms=30",
        "credit",
    ] {
        assert!(
            from_name(name, Topology::flat(1).expect("one pCPU"), 1).is_ok(),
            "{name}"
        );
    }
}
