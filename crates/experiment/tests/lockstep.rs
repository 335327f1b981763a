// SPDX-License-Identifier: MIT OR Apache-2.0
//! No cell of the matrix is in step by accident in the lab: neither those of two VMs of scenarios/lab/testbed.conformance.toml
//! nor the same under other host schedulers.
#![allow(missing_docs)]

use std::path::Path;

use unspin_experiment::conform;
use unspin_lab::{Lab, run, together::Together};
use unspin_scenario::Scenario;

/// Two pCPUs run the same VM half of the time by chance, and a pair of VMs may happen to be in step from one seed's start on.
const SEEDS: u64 = 6;

fn in_step_ppm(scenario: &Scenario) -> Option<i64> {
    let lab = Lab::new(scenario).unwrap_or_else(|error| panic!("{error}"));
    let mut together = Together::new(scenario, lab.host().topology.cpus());
    let mut world = lab.world(scenario, &mut together).expect("a world");
    run(&mut world, scenario, |_| {}).expect("it runs");
    drop(world);
    together.in_step_ppm()
}

/// The mean over all seeds.
fn mean_ppm(scenario: &Scenario) -> Option<i64> {
    let of_seed = |seed| {
        let mut scenario = scenario.clone();
        scenario.seed += seed;
        in_step_ppm(&scenario)
    };
    let each: Option<Vec<i64>> = (0..SEEDS).map(of_seed).collect();
    each.map(|each| each.iter().sum::<i64>() / each.len() as i64)
}

#[test]
fn no_cell_of_the_matrix_is_in_step() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lab/testbed.conformance.toml");
    let cells = conform::load(&file).expect("the cells").cells;
    let mut seen = 0;
    let mut failed = Vec::new();
    for cell in cells.iter().filter(|cell| cell.policy != "ideal") {
        let Some(ppm) = mean_ppm(&cell.scenario) else {
            continue; // one VM
        };
        seen += 1;
        println!("{}, {}, {}: {ppm}", cell.group, cell.lock, cell.policy);
        if ppm > 500_000 {
            failed.push(format!(
                "{}, {}, {}: {ppm}",
                cell.group, cell.lock, cell.policy
            ));
        }
    }
    assert!(seen > 50, "{seen} cells with two VMs");
    assert!(failed.is_empty(), "{failed:#?}");
}
