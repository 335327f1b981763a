// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU shares and slices of VMs in worlds where guests exit, are interrupted and switch: as weights and versions
//! prescribe.
#![allow(missing_docs)]

use crate::common::arranged::{Arranged, Path};
use unspin_lab::{
    LabHost, World,
    costs::Costs,
    ids::{Cpu, Task},
    scheduler::{Allowed, from_name, names::known_names},
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use unspin_scenario::Scenario;

const MILLISECOND: u64 = 1_000_000;

/// VMs that only work, with guest ticks, in these groups.
fn busy<O: Observer>(
    name: &str,
    cpus: u32,
    vcpus: u32,
    paths: Vec<Path>,
    pins: Vec<Allowed>,
    observer: O,
) -> World<O> {
    let text = format!(
        "seed = 3\nduration = \"1000s\"\n[[vm]]\ncount = {}\nvcpus = {vcpus}\nlock = \"ticket\"\nlocks = \"private\"\n\
         user_work = \"3ms\"\nkernel_work = \"100us\"\nhold = \"1us\"\ntick_hz = 100\n",
        paths.len()
    );
    let scenario = Scenario::parse(&text, "busy.toml").expect("a scenario");
    let topology = Topology::flat(cpus).expect("pCPUs");
    let scheduler = from_name(name, topology, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut arranged = Arranged::new(scheduler);
    (arranged.paths, arranged.pins) = (paths, pins);
    let host = LabHost::new(topology);
    let world = World::new(
        &scenario,
        host,
        Costs::default(),
        Box::new(arranged),
        observer,
    );
    world.expect("a world")
}

/// Shares of the VMs' tasks, in order, are within 0.5 % of the expected ones, in any unit.
fn assert_shares(name: &str, mut world: World<()>, expected: &[f64]) -> f64 {
    world.run_until(60_000 * MILLISECOND).expect("it runs");
    let running = |task| world.times(Task(task)).running_ns as f64;
    let all: f64 = (0..world.tasks()).map(running).sum();
    let sum: f64 = expected.iter().sum();
    let mut worst = 0.0f64;
    for (task, expected) in expected.iter().enumerate() {
        let (share, expected) = (running(task as u32) / all, expected / sum);
        let error = (share / expected - 1.0).abs();
        worst = worst.max(error);
        assert!(
            error < 0.005,
            "{name}: task {task} got {share:.4} of {expected:.4}"
        );
    }
    worst
}

/// All schedulers that use weights.
fn weighing() -> impl Iterator<Item = &'static str> {
    known_names().into_iter().filter(|name| *name != "gang")
}

#[test]
fn shares_follow_the_weights_of_vms() {
    for name in weighing().filter(|name| *name != "credit") {
        let paths = [512, 1_024, 3_072].iter().enumerate();
        let paths = paths.map(|(vm, weight)| vec![(vm, *weight)]).collect();
        let world = busy(name, 1, 1, paths, Vec::new(), ());
        let worst = assert_shares(name, world, &[1.0, 2.0, 6.0]);
        println!("{name}: {:.3} %", worst * 100.0);
    }
}

/// Credit, between two. Among three of 1 : 2 : 6 it gives the lightest 14.2 % and not 11.1: Xen cancels debts beyond a
/// slice (csched_acct() raises credits to -CSCHED_CREDITS_PER_TSLICE), which the model must do too.
#[test]
fn credit_follows_weights_as_far_as_debts_are_kept() {
    let path = |weights: &[u32]| -> Vec<Path> {
        let weights = weights.iter().enumerate();
        weights.map(|(vm, weight)| vec![(vm, *weight)]).collect()
    };
    let two = busy("credit", 1, 1, path(&[1_024, 3_072]), Vec::new(), ());
    let worst = assert_shares("credit", two, &[1.0, 3.0]);
    println!("credit: {:.3} %", worst * 100.0);
    let mut three = busy("credit", 1, 1, path(&[512, 1_024, 3_072]), Vec::new(), ());
    three.run_until(60_000 * MILLISECOND).expect("it runs");
    let lightest = three.times(Task(0)).running_ns as f64 / 60e9;
    assert!((0.13..0.16).contains(&lightest), "{lightest}");
}

#[test]
fn shares_follow_nested_groups() {
    for name in weighing().filter(|name| *name != "credit") {
        // 1 : 3 within a group that has a third.
        let paths = vec![
            vec![(9, 1_024), (0, 1_024)],
            vec![(9, 1_024), (1, 3_072)],
            vec![(2, 2_048)],
        ];
        let world = busy(name, 1, 1, paths, Vec::new(), ());
        let worst = assert_shares(name, world, &[1.0, 3.0, 8.0]);
        println!("{name}: {:.3} %", worst * 100.0);
    }
}

/// A VM's weight counts once, however many pCPUs its vCPUs are pinned to.
#[test]
fn shares_of_pinned_vms_follow_their_weights() {
    for name in weighing().filter(|name| *name != "steer") {
        // Not under unspin's scheduler, whose weights are flat: they do not depend on the number of pCPUs.
        let on = |cpu| Allowed::Only(vec![Cpu(cpu)]);
        let pins = vec![on(0), on(1), on(0), on(1)];
        let paths = vec![vec![(0, 1_024)], vec![(1, 3_072)]];
        let world = busy(name, 2, 2, paths, pins, ());
        let worst = assert_shares(name, world, &[1.0, 1.0, 3.0, 3.0]);
        println!("{name}: {:.3} %", worst * 100.0);
    }
}

/// How long each stay on a pCPU was that a preemption ended.
#[derive(Default)]
struct Stays {
    since_ns: u64,
    all: Vec<u64>,
}

impl Observer for Stays {
    fn on_event(&mut self, now_ns: u64, _: Cpu, _: Option<Task>, what: TraceEvent) {
        match what {
            TraceEvent::SwitchIn { .. } => self.since_ns = now_ns,
            TraceEvent::SwitchOut {
                preempted: true, ..
            } => self.all.push(now_ns - self.since_ns),
            _ => {}
        }
    }
}

/// Of VMs of equal weight on one pCPU.
#[test]
fn slices_are_what_the_version_prescribes() {
    let cases = [
        // A latency of 6 ms for 3 entities is 2 ms each; the first tick after that ends the slice
        // (check_preempt_tick()).
        ("cfs-3.5+hz=1000", 3, 3_000_000),
        ("cfs-5.6+hz=1000", 3, 3_000_000),
        // A period of 12 x 0.75 ms: 0.75 ms each.
        ("cfs-4.13+hz=1000", 12, 1_000_000),
        // At 250 Hz nothing is finer than a tick.
        ("cfs-3.19", 3, 4_000_000),
        ("eevdf-6.6", 3, 4_000_000),
        ("eevdf-6.12", 3, 4_000_000),
        ("eevdf-6.19", 3, 4_000_000),
        // The base slice of one pCPU is 0.75 ms, 0.70 ms from 6.14 on.
        ("eevdf-6.6+hz=1000", 3, 1_000_000),
        // HRTICK ends it at its end.
        ("eevdf-7.2", 3, 700_000),
        // Xen: three ticks of 10 ms.
        ("credit", 3, 30_000_000),
        ("gang", 3, 10_000_000),
        ("gang+slot-ms=7", 3, 7_000_000),
        // unspin's scheduler has the same slice, ended on time.
        ("steer", 3, 700_000),
    ];
    for (name, vms, slice_ns) in cases {
        let paths = (0..vms).map(|vm| vec![(vm, 1_024)]).collect();
        let mut world = busy(name, 1, 1, paths, Vec::new(), Stays::default());
        world.run_until(4_000 * MILLISECOND).expect("it runs");
        let stays = world.into_observer().all;
        let settled = &stays[stays.len() / 10..];
        let right = settled.iter().filter(|ns| **ns == slice_ns).count();
        assert!(settled.len() > 100, "{name}: {} slices", settled.len());
        assert!(
            right * 100 >= settled.len() * 95,
            "{name}: {right} of {} slices are {slice_ns} ns: {:?}",
            settled.len(),
            &settled[..20]
        );
    }
}
