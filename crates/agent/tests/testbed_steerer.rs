// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steers a real kernel: boots the testbed with this test binary as PID 1 and runs checks of `steerer/` in two boots,
//! on one clock that does not depend on this machine (icount), with PAUSE exits that are all real.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

#[allow(dead_code, reason = "other tests run the other checks")]
mod steerer;

use libtest_mimic::Arguments;
use steerer::{boot, checks, enter, hostile_guests, where_every_pause_exits};

fn main() {
    // The most part: two CPUs.
    let two_cpus = where_every_pause_exits(&checks::ALL);
    // Guests that say when they are in critical sections, guests that ask for help, and guests that do worse.
    let guests = where_every_pause_exits(&hostile_guests::CHECKS);
    let boots = [
        ("every_check_passes_in_the_testbed", two_cpus),
        ("and_of_guests", guests),
    ];
    let all = boots.map(|(_, checks)| checks.checks).concat();
    enter(where_every_pause_exits(all.leak()));
    let trials = boots.map(|(name, checks)| boot(name, checks, |_| ()));
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}
