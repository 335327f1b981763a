// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steers a real kernel: boots the testbed with this test binary as PID 1 and runs every check of `steerer/` in one boot,
//! on one clock that does not depend on this machine (icount), with PAUSE exits that are all real.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{Qemu, self_test::Checks};

#[path = "steerer/checks.rs"]
mod checks;
#[path = "steerer/costs.rs"]
mod costs;
#[path = "steerer/host.rs"]
mod host;
#[path = "steerer/hostile.rs"]
mod hostile;
#[allow(dead_code, reason = "the observer's checks use the rest")]
#[path = "observer/vms.rs"]
mod observer_vms;
#[path = "steerer/stress.rs"]
mod stress;
#[path = "steerer/vms.rs"]
mod vms;

fn main() {
    let checks = Checks {
        checks: &checks::ALL,
        qemu: Qemu::Stock,
        kvm_amd: "",
    };
    checks.enter();
    checks::child();
    let boot = Trial::test("every_check_passes_in_the_testbed", move || {
        print!("{}", checks.boot_with(stress::bring)?);
        Ok(())
    });
    let trials = vec![boot.with_ignored_flag(!Checks::wanted())];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
