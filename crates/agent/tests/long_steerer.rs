// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes too long for every change: the scheduler beside guests that lie for half a minute each, and from each of five
//! seeds; attached 200 times; for ten minutes of stress-ng; what eCS's extra schedules cost others. Each in a boot of
//! its own.

#[allow(dead_code, reason = "other tests run the other checks")]
mod steerer;

use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use steerer::{boot, enter, hostile::guests, stress, where_every_pause_exits};
use unspin_testbed::self_test::{Checks, names_of};

/// Hostile guests begin from each of so many seeds.
const SEEDS: u64 = 5;

/// Those that need another machine than two CPUs, both for everybody.
fn other_machines() -> impl Iterator<Item = Trial> {
    let machines: [(_, _, u32, &[&str]); 3] = [
        ("four_cpus", "FOUR_CPUS", 4, &[]),
        // One of two CPUs is not for everybody.
        ("an_isolated_cpu", "ISOLATED_CPU", 2, &["nohz_full=1"]),
        // The same by an argument that no sched_ext scheduler gets along with.
        ("isolated_at_boot", "ISOLATED_AT_BOOT", 2, &["isolcpus=1"]),
    ];
    machines.into_iter().map(|(name, of, cpus, arguments)| {
        boot(name, where_every_pause_exits(of), move |options| {
            options.cpus = cpus;
            options.kernel_arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        })
    })
}

/// One check in a boot of its own, from that seed.
fn alone(check: &'static str, seed: u64) -> Trial {
    let one = Checks {
        only: Some(check),
        ..where_every_pause_exits("STEERER_LONG")
    };
    boot(format!("{check}_from_seed_{seed}"), one, move |options| {
        stress::bring(options);
        options.seed = seed;
        let argument = guests::seed_argument(seed);
        options.kernel_arguments.push(argument);
        options.time_limit = Duration::from_secs(3 * 3600);
    })
}

/// From how many seeds a check of that group runs: what goes wrong once in an hour of stress-ng is found by some only.
fn seeds_of(check: &str) -> u64 {
    if check == "stressed_for_minutes" {
        5
    } else {
        1
    }
}

fn main() {
    enter(&[
        "STEERER_LONG",
        "SEEDED",
        "FOUR_CPUS",
        "ISOLATED_CPU",
        "ISOLATED_AT_BOOT",
    ]);
    let once = names_of("STEERER_LONG").into_iter();
    let once = once.flat_map(|check| (1..=seeds_of(check)).map(move |seed| alone(check, seed)));
    let seeded = names_of("SEEDED").into_iter();
    let seeded = seeded.flat_map(|check| (1..=SEEDS).map(move |seed| alone(check, seed)));
    let trials = once.chain(seeded).chain(other_machines()).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
