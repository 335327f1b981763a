// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steers a real kernel: boots the testbed with this test binary as PID 1 and runs every check of `steerer/` in one boot,
//! on one clock that does not depend on this machine (icount), with PAUSE exits that are all real.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

#[allow(dead_code, reason = "other tests run the other checks")]
mod steerer;

use libtest_mimic::Arguments;
use steerer::{
    boot, checks, enter, four_cpus, hostile_guests, isolated, stress, where_every_pause_exits,
};
use unspin_testbed::self_test::Checks;

fn main() {
    // The most part: two CPUs.
    let two_cpus = where_every_pause_exits(&checks::ALL);
    // As many as the machine has or more: the emulator takes turns.
    let four_cpus = where_every_pause_exits(&four_cpus::CHECKS);
    // One of two CPUs is not for everybody.
    let isolated = where_every_pause_exits(&isolated::CHECKS);
    // The same by an argument that no sched_ext scheduler gets along with.
    let isolated_at_boot = where_every_pause_exits(&isolated::AT_BOOT);
    // Guests that say when they are in critical sections, guests that ask for help, and guests that do worse.
    let guests = where_every_pause_exits(&hostile_guests::CHECKS);
    let boots: [(&str, Checks, u32, &[&str]); 5] = [
        ("every_check_passes_in_the_testbed", two_cpus, 2, &[]),
        ("so_does_every_one_of_four_cpus", four_cpus, 4, &[]),
        ("and_of_an_isolated_one", isolated, 2, &["nohz_full=1"]),
        (
            "and_of_one_isolated_at_boot",
            isolated_at_boot,
            2,
            &["isolcpus=1"],
        ),
        ("and_of_guests", guests, 2, &[]),
    ];
    let all = boots.map(|(_, checks, ..)| checks.checks).concat();
    enter(where_every_pause_exits(all.leak()));
    let trials = boots.map(|(name, checks, cpus, arguments)| {
        boot(name, checks, move |options| {
            options.cpus = cpus;
            options.kernel_arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
            stress::bring(options);
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}
