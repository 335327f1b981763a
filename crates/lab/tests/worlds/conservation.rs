// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds in every world: running + runnable + halted is the wall time, no lock has two holders, no wake-up is lost, no
//! event is in the past, and the same seed gives the same run.

use std::hash::Hasher;

use crate::common::{check, random_world, seeds};
use unspin_lab::ids::Task;

#[test]
fn nothing_is_lost_in_any_world() {
    check_worlds(seeds(400));
}

/// The worlds of that many seeds, on all cores.
pub fn check_worlds(seeds: u64) {
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let worker = |first: u64| {
        let mine = (first..seeds).step_by(workers as usize);
        mine.filter_map(|seed| one_seed(seed).err())
            .collect::<Vec<String>>()
    };
    let mut failures = Vec::new();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers)
            .map(|first| scope.spawn(move || worker(first)))
            .collect();
        for one in all {
            failures.extend(one.join().expect("no assertion fails"));
        }
    });
    assert!(
        failures.is_empty(),
        "{} of {seeds} worlds: {}",
        failures.len(),
        failures.join("\n")
    );
}

/// The world of that seed, run twice. Errors name the world.
fn one_seed(seed: u64) -> Result<(), String> {
    let run = || {
        let made = random_world(seed);
        let (name, charged) = (made.name, made.charged);
        let world = check(&made.scenario, made.host, Box::new(made.scheduler));
        let world = world.map_err(|error| format!("seed {seed}, {name}: {error}"))?;
        let iterations: u64 = world.vcpus().map(|(.., seen)| seen.operations).sum();
        let running_ns: u64 = (0..world.tasks())
            .map(|task| world.times(Task(task)).running_ns)
            .sum();
        let witness = world.into_observer();
        assert_eq!(iterations, witness.acquisitions, "seed {seed}");
        let charged_ns: u64 = charged.borrow().iter().sum();
        assert!(
            charged_ns <= running_ns,
            "seed {seed}, {name}: {charged_ns} of {running_ns} ns are charged"
        );
        Ok::<u64, String>(witness.all.finish())
    };
    assert_eq!(run()?, run()?, "seed {seed} twice");
    Ok(())
}
