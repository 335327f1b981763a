// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds in every world: running + runnable + halted is the wall time, no lock has two holders, no wake-up is lost, no
//! event lies in the past, and the same seed gives the same run.

mod common;

use std::hash::Hasher;

use common::{Random, check, random_host, random_scenario, random_scheduler};

/// How many seeds; `make test-long` asks for 10,000.
fn seeds() -> u64 {
    let asked = std::env::var("UNSPIN_LAB_SEEDS").ok();
    asked.map_or(200, |text| {
        text.parse().expect("UNSPIN_LAB_SEEDS is a number")
    })
}

#[test]
fn nothing_is_lost_in_any_world() {
    for seed in 0..seeds() {
        let run = || {
            let mut random = Random(seed);
            let scenario = random_scenario(seed, &mut random);
            let host = random_host(&mut random);
            let scheduler = random_scheduler(host.topology, &mut random);
            let world = check(&scenario, host, scheduler);
            let world = world.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let turns: u64 = world.vcpus().map(|(.., seen)| seen.operations).sum();
            let witness = world.into_observer();
            assert_eq!(turns, witness.acquisitions, "seed {seed}");
            witness.all.finish()
        };
        assert_eq!(run(), run(), "seed {seed} twice");
    }
}
