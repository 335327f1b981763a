// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the spin thresholds of real VMs where no module sets windows: boots the testbed with this test binary as PID 1, without
//! unspin_ple. Ignored unless UNSPIN_E2E=1.

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{
    Qemu,
    self_test::{Checks, enter},
};

#[path = "windows/thresholds.rs"]
mod thresholds;
#[path = "observer/vms.rs"]
#[allow(dead_code, reason = "the observer's checks use the rest")]
mod vms;

const CHECKS: Checks = Checks {
    boot: "THRESHOLDS",
    only: None,
    qemu: Qemu::Unspin,
    kvm_amd: "",
};

fn main() {
    enter(&["THRESHOLDS"], &[]);
    let boot = Trial::test("every_check_passes_in_the_testbed", move || {
        print!("{}", CHECKS.boot()?);
        Ok(())
    });
    let trials = vec![boot.with_ignored_flag(!Checks::wanted())];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
