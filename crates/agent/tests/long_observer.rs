// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes too long for every change: 1,000 VMs with 8,000 vCPU threads that come and go, in one boot of the testbed.

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{
    Qemu,
    self_test::{Checks, enter},
};

#[path = "observer/churn.rs"]
#[allow(dead_code, reason = "the short form is testbed_observer's")]
mod churn;
#[path = "observer/vms.rs"]
#[allow(dead_code, reason = "the short form is testbed_observer's")]
mod vms;

fn main() {
    let checks = Checks {
        boot: "OBSERVER_LONG",
        only: None,
        qemu: Qemu::Unspin,
        kvm_amd: "",
    };
    enter(&["OBSERVER_LONG"], &["COUNTED", "INTERRUPTED"]);
    let boot = Trial::test("sums_stay_right_with_8000_threads", move || {
        print!("{}", checks.boot()?);
        Ok(())
    });
    let trials = vec![boot.with_ignored_flag(!Checks::wanted())];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
