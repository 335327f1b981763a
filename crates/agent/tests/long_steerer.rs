// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes too long for every change: the scheduler beside guests that lie for half a minute each, and attached 200
//! times, from each of five seeds; for ten minutes of stress-ng; what eCS's extra schedules cost others. Each in a boot of
//! its own.

#[allow(dead_code, reason = "other tests run the other checks")]
mod steerer;

use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use steerer::{
    boot, candidates, checks, debooster, ecs, ecs_fairness, ecs_latency, enter, four_cpus, hostile,
    hostile_guests, isolated, pv_pages, shares, stress, where_every_pause_exits,
};

/// Those beside the ones that `make test` has no time for.
static OTHERS: [(&str, fn()); 12] = [
    (
        "the_papers_debooster_ends_at_cgroups",
        debooster::the_papers_debooster_ends_at_cgroups,
    ),
    (
        "strict_serves_whom_kvm_passes_over",
        candidates::strict_serves_whom_kvm_passes_over,
    ),
    (
        "rules_and_policies_compose",
        candidates::rules_and_policies_compose,
    ),
    (
        "choices_take_effect_at_once",
        candidates::choices_take_effect_at_once,
    ),
    (
        "the_chosen_ones_last_cpu_looks_again",
        candidates::the_chosen_ones_last_cpu_looks_again,
    ),
    (
        "pages_outlive_their_scheduler",
        pv_pages::pages_outlive_their_scheduler,
    ),
    (
        "a_locked_down_host_tells_guests_in_the_map",
        pv_pages::a_locked_down_host_tells_guests_in_the_map,
    ),
    (
        "vms_keep_to_their_weights",
        shares::vms_keep_to_their_weights,
    ),
    ("stressed_for_minutes", stress::stressed_for_minutes),
    (
        "annotation_buys_no_share",
        ecs_fairness::annotation_buys_no_share,
    ),
    (
        "extra_time_delays_others_by_1_ms_at_most",
        ecs_latency::extra_time_delays_others_by_1_ms_at_most,
    ),
    (
        "a_heavier_vm_wakes_up_1_ms_later_at_most",
        ecs_latency::a_heavier_vm_wakes_up_1_ms_later_at_most,
    ),
];

/// From each seed, as the hostile guests.
static SEEDED: [(&str, fn()); 1] = [(
    "attached_200_times_under_load",
    hostile::attached_200_times_under_load,
)];

/// Hostile guests, and attaches, begin from each of so many seeds.
const SEEDS: u64 = 5;

/// Those that need another machine than two CPUs, both for everybody.
fn other_machines() -> impl Iterator<Item = Trial> {
    let machines: [(_, &'static [(_, _)], u32, &[&str]); 3] = [
        ("four_cpus", &four_cpus::CHECKS, 4, &[]),
        // One of two CPUs is not for everybody.
        ("an_isolated_cpu", &isolated::CHECKS, 2, &["nohz_full=1"]),
        // The same by an argument that no sched_ext scheduler gets along with.
        ("isolated_at_boot", &isolated::AT_BOOT, 2, &["isolcpus=1"]),
    ];
    machines.into_iter().map(|(name, checks, cpus, arguments)| {
        boot(name, where_every_pause_exits(checks), move |options| {
            options.cpus = cpus;
            options.kernel_arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        })
    })
}

fn main() {
    let checks = [
        &checks::LONG[..],
        &pv_pages::CHECKS[..1],
        &ecs::CHECKS,
        &OTHERS,
        &SEEDED,
        &hostile_guests::LONG_CHECKS,
    ];
    let checks: &'static [(&str, fn())] = checks.concat().leak();
    let elsewhere = [
        &four_cpus::CHECKS[..],
        &isolated::CHECKS,
        &isolated::AT_BOOT,
    ];
    let all = [checks, &elsewhere.concat()].concat();
    enter(where_every_pause_exits(all.leak()));
    let first_seeded = checks.len() - hostile_guests::LONG_CHECKS.len() - SEEDED.len();
    let boots = (0..checks.len())
        .map(|at| (at, 1))
        .chain((first_seeded..checks.len()).flat_map(|at| (2..=SEEDS).map(move |seed| (at, seed))));
    let trials = boots.map(|(at, seed)| {
        let name = format!("{}_from_seed_{seed}", checks[at].0);
        let one = where_every_pause_exits(&checks[at..=at]);
        boot(name, one, move |options| {
            stress::bring(options);
            options.seed = seed;
            let argument = hostile_guests::seed_argument(seed);
            options.kernel_arguments.push(argument);
            options.time_limit = Duration::from_secs(3 * 3600);
        })
    });
    let trials = trials.chain(other_machines()).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
