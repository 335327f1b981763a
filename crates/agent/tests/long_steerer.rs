// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes too long for every change: the scheduler for half a minute of VMs from each of five seeds, for ten minutes
//! of stress-ng, and attached 1,000 times,
//! beside guests that lie for half a minute each; what eCS's extra schedules cost others. Each in a boot of its own.

use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{Qemu, self_test::Checks};

#[path = "steerer/candidates.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod candidates;
#[path = "steerer/checks.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod checks;
#[path = "steerer/costs.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod costs;
#[path = "steerer/debooster.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod debooster;
#[path = "steerer/dry.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod dry;
#[path = "steerer/ecs.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod ecs;
#[path = "steerer/ecs_fairness.rs"]
mod ecs_fairness;
#[path = "steerer/helping.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod helping;
#[path = "steerer/host.rs"]
mod host;
#[path = "steerer/hostile.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod hostile;
#[path = "steerer/hostile_guests.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod hostile_guests;
#[path = "observer/vms.rs"]
#[allow(dead_code, reason = "the observer's checks use the rest")]
mod observer_vms;
#[path = "steerer/raw_vm.rs"]
mod raw_vm;
#[path = "steerer/shares.rs"]
mod shares;
#[path = "steerer/stress.rs"]
mod stress;
#[path = "steerer/vms.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod vms;
#[path = "steerer/watchdog.rs"]
#[allow(dead_code, reason = "the short checks are testbed_steerer's")]
mod watchdog;

static CHECKS: [(&str, fn()); 12] = [
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
];

/// The last of them begins from so many seeds of the machine.
const SEEDS: u64 = 5;

fn main() {
    let all = Checks {
        checks: &CHECKS,
        qemu: Qemu::Stock,
        kvm_amd: "",
    };
    all.enter();
    checks::child();
    hostile_guests::child();
    let last = CHECKS.len() - 1;
    let boots = (0..CHECKS.len())
        .map(|at| (at, 1))
        .chain((2..=SEEDS).map(|seed| (last, seed)));
    let trials = boots.map(|(at, seed)| {
        let one = &CHECKS[at..=at];
        let checks = Checks { checks: one, ..all };
        let boot = Trial::test(format!("{}_from_seed_{seed}", one[0].0), move || {
            let said = checks.boot_with(|options| {
                stress::bring(options);
                options.seed = seed;
                options.time_limit = Duration::from_secs(3 * 3600);
            });
            print!("{}", said?);
            Ok(())
        });
        boot.with_ignored_flag(!Checks::wanted())
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
