// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steers a real kernel: boots the testbed with this test binary as PID 1 and runs every check of `steerer/` in one boot,
//! on one clock that does not depend on this machine (icount), with PAUSE exits that are all real.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{Qemu, self_test::Checks};

#[path = "steerer/candidates.rs"]
#[allow(dead_code, reason = "these checks are long_steerer's")]
mod candidates;
#[path = "steerer/checks.rs"]
mod checks;
#[path = "steerer/costs.rs"]
mod costs;
#[path = "steerer/debooster.rs"]
#[allow(dead_code, reason = "these checks are long_steerer's")]
mod debooster;
#[path = "steerer/dry.rs"]
mod dry;
#[path = "steerer/ecs.rs"]
#[allow(dead_code, reason = "these checks are long_steerer's")]
mod ecs;
#[path = "steerer/ecs_fairness.rs"]
#[allow(dead_code, reason = "the long checks use the rest")]
mod ecs_fairness;
#[path = "steerer/four_cpus.rs"]
mod four_cpus;
#[path = "steerer/helping.rs"]
mod helping;
#[path = "steerer/host.rs"]
mod host;
#[path = "steerer/hostile.rs"]
#[allow(dead_code, reason = "the long checks use the rest")]
mod hostile;
#[path = "steerer/hostile_guests.rs"]
mod hostile_guests;
#[path = "steerer/isolated.rs"]
mod isolated;
#[allow(dead_code, reason = "the observer's checks use the rest")]
#[path = "observer/vms.rs"]
mod observer_vms;
#[path = "steerer/raw_vm.rs"]
mod raw_vm;
#[path = "steerer/stress.rs"]
mod stress;
#[path = "steerer/vms.rs"]
mod vms;
#[path = "steerer/watchdog.rs"]
mod watchdog;

/// The most part: two CPUs.
const TWO_CPUS: Checks = Checks {
    checks: &checks::ALL,
    qemu: Qemu::Stock,
    kvm_amd: "",
};

/// As many as the machine has or more: the emulator takes turns.
const FOUR_CPUS: Checks = Checks {
    checks: &four_cpus::CHECKS,
    ..TWO_CPUS
};

/// One of two CPUs is not for everybody.
const ISOLATED: Checks = Checks {
    checks: &isolated::CHECKS,
    ..TWO_CPUS
};

/// The same by an argument that no sched_ext scheduler gets along with.
const ISOLATED_AT_BOOT: Checks = Checks {
    checks: &isolated::AT_BOOT,
    ..TWO_CPUS
};

/// Guests that say when they are in critical sections, guests that ask for help, and guests that do worse.
const GUESTS: Checks = Checks {
    checks: &hostile_guests::CHECKS,
    ..TWO_CPUS
};

fn main() {
    let all = [
        TWO_CPUS.checks,
        FOUR_CPUS.checks,
        ISOLATED.checks,
        ISOLATED_AT_BOOT.checks,
        GUESTS.checks,
    ]
    .concat();
    Checks {
        checks: all.leak(),
        ..TWO_CPUS
    }
    .enter();
    checks::child();
    hostile_guests::child();
    let boots: [(&str, Checks, u32, &[&str]); 5] = [
        ("every_check_passes_in_the_testbed", TWO_CPUS, 2, &[]),
        ("so_does_every_one_of_four_cpus", FOUR_CPUS, 4, &[]),
        ("and_of_an_isolated_one", ISOLATED, 2, &["nohz_full=1"]),
        (
            "and_of_one_isolated_at_boot",
            ISOLATED_AT_BOOT,
            2,
            &["isolcpus=1"],
        ),
        ("and_of_guests", GUESTS, 2, &[]),
    ];
    let trials = boots.map(|(name, checks, cpus, arguments)| {
        let boot = Trial::test(name, move || {
            let said = checks.boot_with(|options| {
                options.cpus = cpus;
                options.kernel_arguments =
                    arguments.iter().map(|word| (*word).to_owned()).collect();
                stress::bring(options);
            });
            print!("{}", said?);
            Ok(())
        });
        boot.with_ignored_flag(!Checks::wanted())
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}
