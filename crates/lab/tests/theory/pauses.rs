// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often a waiter exits, computed from the window, the loop and the costs. And which task pays for borrowed time.
#![allow(missing_docs)]

use crate::common::arranged::Arranged;
use unspin_lab::{
    LabHost, SteeringModel, World,
    costs::Costs,
    scheduler::{RoundRobin, from_name},
    topology::Topology,
};
use unspin_policy::{Control, Vendor, WindowRule};
use unspin_scenario::Scenario;

const HOLD_NS: f64 = 100e6;

/// Pause-loop exits of a waiter while another vCPU holds the lock for 100 ms, each on its own pCPU.
fn exits(vendor: Vendor, window: u32, gap_cycles: u32) -> f64 {
    let text = "seed = 1\niterations = 1\n[[vm]]\nvcpus = 2\nlock = \"test_and_test_and_set\"\nlocks = 1\nuser_work = \"0ns\"\n\
        hold = \"100ms\"\ntick_hz = 0\npause_every_spins = 1\n";
    let scenario = Scenario::parse(text, "wait.toml").expect("a scenario");
    let host = LabHost {
        vendor,
        gap_cycles,
        window: WindowRule::new(Control::Fixed, vendor).with_base(window),
        ..LabHost::new(Topology::flat(2).expect("pCPUs"))
    };
    let scheduler = Box::new(RoundRobin::new(2, 1_000_000_000_000));
    let world = World::new(&scenario, host, Costs::default(), scheduler, ());
    let mut world = world.expect("a world");
    world.run_until(1 << 40).expect("it ends");
    let exits = world
        .vcpus()
        .map(|(.., statistics)| statistics.pause_exits as f64);
    exits.sum()
}

/// The count restarts at each entry (AMD), or the loop does (Intel).
#[test]
fn exits_come_as_often_as_the_window_says() {
    let costs = Costs::default();
    let spin_ns = f64::from(costs.wait_spin_ps + costs.pause_ps) / 1e3;
    // Exit, consideration of the one candidate, which runs, and entry.
    let handled_ns =
        f64::from(costs.exit_ns + costs.on_spin_ns + costs.candidate_ns + costs.entry_ns);
    for window in [200, 1_000, 3_000, 30_000] {
        // The PAUSE after as many as pass.
        let amd = HOLD_NS / (f64::from(window + 1) * spin_ns + handled_ns);
        // With a threshold the time in the host reloads the count too; without one only the entry does.
        for gap_cycles in [128, 0] {
            let measured = exits(Vendor::Amd, window, gap_cycles);
            println!("AMD {window}: {measured} exits, {amd:.1} expected");
            assert!(
                (measured / amd - 1.0).abs() < 0.01,
                "AMD {window}, threshold {gap_cycles}: {measured} of {amd}"
            );
        }
        // The first PAUSE that is more than that many cycles after the first one.
        let cycles = f64::from(window) + 70.0;
        let intel = HOLD_NS / (cycles / f64::from(costs.tsc_mhz) * 1e3 + handled_ns);
        let measured = exits(Vendor::Intel, window, 128);
        println!("Intel {window}: {measured} exits, {intel:.1} expected");
        let tolerance = 70.0 / f64::from(window) + 0.01;
        assert!(
            (measured / intel - 1.0).abs() < tolerance,
            "Intel {window}: {measured} of {intel}"
        );
    }
}

/// Under `steer` with loans the lender is charged, never the borrower.
#[test]
fn who_lends_pays() {
    let text = "seed = 4\nduration = \"100s\"\n[[vm]]\nvcpus = 4\nlock = \"ticket\"\nlocks = 1\nuser_work = { exponential = \"100us\" }\n\
        hold = { exponential = \"50us\" }\ntick_hz = 0\npv_page = true\npause_every_spins = 1\n";
    let scenario = Scenario::parse(text, "loans.toml").expect("a scenario");
    let topology = Topology::flat(2).expect("pCPUs");
    let difference = |policies: &str| {
        let host = LabHost {
            window: WindowRule::new(Control::Fixed, Vendor::Amd).with_base(700),
            steering: SteeringModel {
                policies: policies.parse().expect("policies"),
                ..SteeringModel::default()
            },
            ..LabHost::new(topology)
        };
        let arranged = Arranged::new(from_name("steer", topology, 1).expect("a name"));
        let charged = arranged.charged.clone();
        let world = World::new(&scenario, host, Costs::default(), Box::new(arranged), ());
        let mut world = world.expect("a world");
        world.run_until(4_000_000_000).expect("it runs");
        let running: Vec<u64> = world
            .vcpus()
            .map(|(_, _, task, _)| world.times(task).running_ns)
            .collect();
        let loans: u64 = world.vcpus().map(|(.., statistics)| statistics.loans).sum();
        drop(world);
        let charged = charged.borrow();
        let each = running.iter().zip(charged.iter());
        let apart_ns: u64 = each.map(|(ran, paid)| ran.abs_diff(*paid)).sum();
        println!("{policies}: {loans} loans, {running:?} ran, {charged:?} charged");
        // What all paid is what all ran, except for slices that have not ended.
        let (ran, paid): (u64, u64) = (running.iter().sum(), charged.iter().sum());
        assert!(
            ran.abs_diff(paid) <= 2 * 8_000_000,
            "{ran} ran, {paid} paid"
        );
        (loans, apart_ns)
    };
    let (loans, apart_ns) = difference("refuse-yields");
    assert!(loans == 0 && apart_ns < 100_000, "{apart_ns}");
    let (loans, apart_ns) = difference("loan");
    // Each loan is time that one task ran and another paid.
    assert!(
        loans > 100 && apart_ns > 2_000_000,
        "{loans} loans, {apart_ns}"
    );
}
