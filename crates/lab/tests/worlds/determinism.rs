// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same seed gives the same run to the last event: wherever stacks and heaps are, on any thread, beside any other
//! world, with any number of workers. A bug of this kind is seeded, and must be found.
#![allow(missing_docs)]

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
    hint::black_box,
    thread,
    time::Instant,
};

use crate::common::{Witness, arranged::Arranged, random_world};
use unspin_lab::{
    LabHost, SteeringModel, World,
    costs::Costs,
    ids::Cpu,
    scheduler::{HostScheduler, from_name, names::known_names},
    topology::Topology,
};
use unspin_policy::{CandidateRule, Control, Vendor, WindowRule};
use unspin_scenario::Scenario;

const CPUS: u32 = 4;

/// Locks, shootdowns, wake-ups and guest ticks on half as many pCPUs as vCPUs.
fn scenario() -> Scenario {
    let text = "seed = 11\niterations = 6\n[[vm]]\ncount = 2\nvcpus = 4\nlock = \"ticket\"\nlocks = 1\n\
        user_work = { exponential = \"30us\" }\nkernel_work = \"1us\"\nhold = { exponential = \"40us\" }\n\
        shootdown_every_iterations = 2\nwakeup_every_iterations = 3\ntick_hz = 1000\npv_page = true\nhelp_after_spins = 4096\n\
        [[vm]]\nvcpus = 3\nlock = \"preemptable_ticket\"\nuser_work = \"5us\"\nhold = \"1us\"\ntick_hz = 1000\n";
    Scenario::parse(text, "determinism.toml").expect("a scenario")
}

fn topology() -> Topology {
    Topology::new(2, 1, 2, 1).expect("pCPUs")
}

/// Hash of all events, and of the statistics at the end.
fn run(scenario: &Scenario, host: LabHost, scheduler: Box<dyn HostScheduler>) -> u64 {
    let world = World::new(
        scenario,
        host,
        Costs::default(),
        scheduler,
        Witness::default(),
    );
    let mut world = world.expect("a world");
    let ended = world.run_until(20_000_000_000);
    let statistics: Vec<String> = world.vcpus().map(|known| format!("{known:?}")).collect();
    let mut all = world.into_observer().all;
    (format!("{ended:?}"), statistics).hash(&mut all);
    all.finish()
}

/// That many bytes further down the stack.
fn deeper<T>(levels: u32, make: &dyn Fn() -> T) -> T {
    let frame = black_box([levels as u8; 1_000]);
    let result = match levels {
        0 => make(),
        _ => deeper(levels - 1, make),
    };
    black_box(frame);
    result
}

/// The results of `make` in several environments that must not matter.
fn surroundings(make: &(dyn Fn() -> u64 + Sync)) -> Vec<u64> {
    let mut results = vec![make(), deeper(50, &make)];
    for kept in [17, 300, 5_000] {
        // Holes and blocks of all sizes, so that the next world has other addresses.
        let heap: Vec<Box<[u8]>> = (1..kept).map(|size| vec![1; size * 7].into()).collect();
        let heap: Vec<_> = heap.into_iter().step_by(3).collect();
        results.push(make());
        drop(black_box(heap));
    }
    // An unrelated world before, and one that is half done meanwhile.
    let other = random_world(5);
    run(&other.scenario, other.host, Box::new(other.scheduler));
    let other = random_world(9);
    let half = World::new(
        &other.scenario,
        other.host,
        Costs::default(),
        Box::new(other.scheduler),
        (),
    );
    let mut half = half.expect("a world");
    half.run_until(200_000).expect("it runs");
    results.push(make());
    half.run_until(400_000).expect("it runs");
    // Workers at once.
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|levels| scope.spawn(move || deeper(levels * 7, &make)))
            .collect();
        results.extend(
            workers
                .into_iter()
                .map(|worker| worker.join().expect("ran")),
        );
    });
    results
}

/// The number of different results.
fn different(mut results: Vec<u64>) -> usize {
    results.sort_unstable();
    results.dedup();
    results.len()
}

fn steered(policies: &str) -> SteeringModel {
    SteeringModel {
        policies: policies.parse().expect("policies"),
        facts_age_ns: 3_000,
        lost_ppm: 20_000,
        ..SteeringModel::default()
    }
}

/// Every scheduler, with the options that it may have.
fn combinations() -> Vec<(String, LabHost)> {
    let host = || LabHost::new(topology());
    let mut all = Vec::new();
    let options = [
        "cfs-4.13+debooster=paper",
        "cfs-5.6+debooster=ancestor",
        "cfs-5.6+balance",
        "eevdf-7.2+lag-credit",
    ];
    for (place, name) in known_names().into_iter().chain(options).enumerate() {
        let vendor = [Vendor::Amd, Vendor::Intel][place % 2];
        for control in Control::ALL {
            all.push((
                name.to_owned(),
                LabHost {
                    vendor,
                    window: WindowRule::new(control, vendor),
                    candidates: CandidateRule::ALL[all.len() % CandidateRule::ALL.len()],
                    halt_poll_ns: 30_000 * (all.len() as u32 % 2),
                    ecs: match name {
                        "steer" => None,
                        _ => [None, Some(false), Some(true)][all.len() % 3],
                    },
                    cpu_hogs: all.len() as u32 % 2,
                    ..host()
                },
            ));
        }
    }
    for policies in ["loan", "helping", "kernel-exit", "directed-yield,loan"] {
        let steering = steered(policies);
        let host = LabHost { steering, ..host() };
        all.push(("steer".to_owned(), host));
    }
    all
}

#[test]
fn the_same_seed_gives_the_same_run_under_every_scheduler_and_policy() {
    let scenario = scenario();
    let mut seen = Vec::new();
    for (name, host) in combinations() {
        let make = || {
            let scheduler = from_name(&name, topology(), 1).expect("a name");
            run(&scenario, host.clone(), scheduler)
        };
        let results = surroundings(&make);
        seen.push(results[0]);
        assert_eq!(different(results), 1, "{name}, {host:?}");
    }
    // And they are not all the same.
    assert!(different(seen.clone()) > seen.len() / 3, "{seen:?}");
}

#[test]
fn another_seed_gives_another_run() {
    let runs = (0..20).map(|seed| {
        let made = random_world(seed);
        run(&made.scenario, made.host, Box::new(made.scheduler))
    });
    assert_eq!(different(runs.collect()), 20);
}

/// A pCPU from any number.
fn any_cpu(number: u64) -> Cpu {
    Cpu((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % CPUS)
}

/// The test above finds a seeded bug.
#[test]
fn hidden_randomness_is_found() {
    type Bug = fn() -> Box<dyn FnMut(Cpu) -> Cpu>;
    let bugs: [(&str, Bug); 4] = [
        ("an address on the heap", || {
            let here = Box::new(0u64);
            Box::new(move |_| any_cpu(&raw const *here as u64 >> 4))
        }),
        ("an address on the stack", || {
            Box::new(|_| {
                let here = black_box(0u64);
                any_cpu(&raw const here as u64 >> 4)
            })
        }),
        ("the order of a hash table", || {
            let table: HashMap<u32, ()> = (0..CPUS).map(|cpu| (cpu, ())).collect();
            let first = *table.keys().next().expect("some");
            Box::new(move |_| Cpu(first))
        }),
        ("the wall clock", || {
            let begin = Instant::now();
            Box::new(move |_| any_cpu(begin.elapsed().as_nanos() as u64))
        }),
    ];
    let scenario = scenario();
    for (name, bug) in bugs {
        let make = || {
            let scheduler = from_name("cfs-5.6", topology(), 1).expect("a name");
            let mut arranged = Arranged::new(scheduler);
            arranged.misplace = Some(bug());
            run(&scenario, LabHost::new(topology()), Box::new(arranged))
        };
        assert!(different(surroundings(&make)) > 1, "{name} went unnoticed");
    }
}
