// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes too long for every change: the scheduler for half a minute of VMs from each of five seeds, for ten minutes
//! of stress-ng, and attached 1,000 times, beside guests that lie for half a minute each; what eCS's extra schedules cost
//! others. Each in a boot of its own.

#[allow(dead_code, reason = "other tests run the other checks")]
mod steerer;

use std::time::Duration;

use libtest_mimic::Arguments;
use steerer::{
    boot, candidates, checks, debooster, ecs, ecs_fairness, enter, hint_pages, hostile,
    hostile_guests, shares, stress, where_every_pause_exits,
};

static CHECKS: [(&str, fn()); 26] = [
    checks::LONG[0],
    checks::LONG[1],
    checks::LONG[2],
    checks::LONG[3],
    checks::LONG[4],
    checks::LONG[5],
    checks::LONG[6],
    checks::LONG[7],
    checks::LONG[8],
    checks::LONG[9],
    hint_pages::CHECKS[0],
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
        "pages_outlive_their_scheduler",
        hint_pages::pages_outlive_their_scheduler,
    ),
    (
        "a_locked_down_host_tells_guests_in_the_map",
        hint_pages::a_locked_down_host_tells_guests_in_the_map,
    ),
    ecs::CHECKS[0],
    ecs::CHECKS[1],
    ecs::CHECKS[2],
    (
        "vms_keep_to_their_weights",
        shares::vms_keep_to_their_weights,
    ),
    (
        "attached_1000_times_under_load",
        hostile::attached_1000_times_under_load,
    ),
    ("stressed_for_minutes", stress::stressed_for_minutes),
    (
        "annotation_buys_no_share",
        ecs_fairness::annotation_buys_no_share,
    ),
    (
        "extra_time_delays_others_by_1_ms_at_most",
        ecs_fairness::extra_time_delays_others_by_1_ms_at_most,
    ),
    (
        "nobody_loses_in_the_long_run",
        hostile_guests::nobody_loses_in_the_long_run,
    ),
    (
        "nobody_loses_beside_a_liar",
        hostile_guests::nobody_loses_beside_a_liar,
    ),
];

/// The last so many of them begin from so many seeds of the machine.
const SEEDED: usize = 2;
const SEEDS: u64 = 5;

fn main() {
    enter(where_every_pause_exits(&CHECKS));
    let first_seeded = CHECKS.len() - SEEDED;
    let boots = (0..CHECKS.len())
        .map(|at| (at, 1))
        .chain((first_seeded..CHECKS.len()).flat_map(|at| (2..=SEEDS).map(move |seed| (at, seed))));
    let trials = boots.map(|(at, seed)| {
        let name = format!("{}_from_seed_{seed}", CHECKS[at].0);
        let one = where_every_pause_exits(&CHECKS[at..=at]);
        boot(name, one, move |options| {
            stress::bring(options);
            options.seed = seed;
            options.time_limit = Duration::from_secs(3 * 3600);
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
