// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware threads: two busy ones of a core do 1.25 times what one does, each at 640 of 1,024 (Costs::smt_speed).

use unspin_lab::{LabHost, World, costs::Costs, scheduler::from_name, topology::Topology};
use unspin_scenario::Scenario;

/// Iterations that each of that many vCPUs does in 100 ms, on those pCPUs.
fn slices(vcpus: u32, topology: Topology) -> Vec<u64> {
    let text = format!(
        "seed = 1\nduration = \"100ms\"\n[[vm]]\nvcpus = {vcpus}\nlock = \"ticket\"\nlocks = \"private\"\n\
         user_work = \"10us\"\nhold = \"1us\"\ntick_hz = 100\n"
    );
    let scenario = Scenario::parse(&text, "siblings.toml").expect("a scenario");
    let scheduler = from_name("eevdf-7.2", topology, 1).expect("a scheduler");
    let host = LabHost::new(topology);
    let world = World::new(&scenario, host, Costs::default(), scheduler, ());
    let mut world = world.expect("a world");
    world.run_until(100_000_000).expect("it runs");
    world.vcpus().map(|(.., seen)| seen.operations).collect()
}

#[test]
fn a_busy_sibling_takes_its_part_of_the_core() {
    let alone = slices(1, Topology::new(1, 1, 1, 2).expect("a core"))[0];
    let together = slices(2, Topology::new(1, 1, 1, 2).expect("a core"));
    for slices in together {
        let share = slices as f64 / alone as f64;
        assert!((share - 0.625).abs() < 0.005, "{slices} of {alone}");
    }
    // Separate cores do not slow each other down.
    let apart = slices(2, Topology::flat(2).expect("two cores"));
    assert!(
        apart.iter().all(|slices| slices.abs_diff(alone) < 20),
        "{apart:?}, {alone}"
    );
}
