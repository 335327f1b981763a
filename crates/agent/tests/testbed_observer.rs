// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes real VMs: boots the testbed with this test binary as PID 1 and runs every check of `observer/checks.rs` in
//! one boot, on one clock that does not depend on this machine (icount), with PAUSE exits that are all real.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{Qemu, self_test::Checks};

#[path = "observer/checks.rs"]
mod checks;
#[path = "observer/ipis.rs"]
mod ipis;
#[path = "observer/join.rs"]
mod join;
#[path = "observer/losses.rs"]
mod losses;
#[path = "observer/vms.rs"]
mod vms;

fn main() {
    let checks = Checks {
        checks: &checks::ALL,
        qemu: Qemu::Stock,
    };
    checks.enter();
    if std::env::args().nth(1).as_deref() == Some("attach") {
        checks::attach_and_say();
    }
    let boot = Trial::test("every_check_passes_in_the_testbed", move || {
        print!("{}", checks.boot()?);
        Ok(())
    });
    let trials = vec![boot.with_ignored_flag(!Checks::wanted())];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
