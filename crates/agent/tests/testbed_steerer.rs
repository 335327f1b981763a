// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steers a real kernel: boots the testbed with this test binary as PID 1 and runs checks of `steerer/` in five boots,
//! on one clock that does not depend on this machine (icount), with PAUSE exits that are all real.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

#[allow(dead_code, reason = "other tests run the other checks")]
mod steerer;

use libtest_mimic::Arguments;
use steerer::{boot, enter, failure, where_every_pause_exits};
use unspin_testbed::Topology;

fn main() {
    // Two CPUs: the most part, and, apart so that boots run side by side, who wakes up, what VMs get, and what ends a
    // scheduler. Four CPUs without a common cache.
    enter(&["STEERER", "WAKEUPS", "GUESTS", "FAILURE", "FOUR_CACHES"]);
    let boots = [
        ("every_check_passes_in_the_testbed", "STEERER"),
        ("and_of_wakeups", "WAKEUPS"),
        ("and_of_guests", "GUESTS"),
    ];
    let trials = boots.map(|(name, of)| boot(name, where_every_pause_exits(of), |_| ()));
    let failures = boot(
        "and_of_failures",
        where_every_pause_exits("FAILURE"),
        failure::bring,
    );
    let caches = boot(
        "and_of_caches",
        where_every_pause_exits("FOUR_CACHES"),
        |options| {
            options.topology = "2x2x1x1".parse().ok();
            options.cpus = options.topology.map_or(0, Topology::cpus);
        },
    );
    let trials = trials.into_iter().chain([failures, caches]).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
