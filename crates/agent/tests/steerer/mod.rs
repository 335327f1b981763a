// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the scheduler and what they share. `testbed_steerer`, `long_steerer` and `long_kernel_boots` each run some of
//! them, in boots of their own.

pub mod candidates;
pub mod checks;
pub mod costs;
pub mod debooster;
pub mod dry;
pub mod ecs;
pub mod ecs_fairness;
pub mod ecs_latency;
pub mod four_cpus;
pub mod helping;
pub mod host;
pub mod hostile;
pub mod hostile_beside;
pub mod hostile_code;
pub mod hostile_guests;
pub mod hostile_kinds;
pub mod isolated;
#[path = "../observer/vms.rs"]
pub mod observer_vms;
pub mod pv_pages;
pub mod raw_vm;
pub mod shares;
pub mod stress;
pub mod vms;
pub mod watchdog;
pub mod weights;

use libtest_mimic::Trial;
use unspin_testbed::{Options, Qemu, self_test::Checks};

/// Those, where every PAUSE exits.
pub const fn where_every_pause_exits(checks: &'static [(&'static str, fn())]) -> Checks {
    Checks {
        checks,
        qemu: Qemu::Stock,
        kvm_amd: "",
    }
}

/// First thing in `main`, with all checks of the binary: inside the testbed, or as a child of a check, it does not return.
pub fn enter(all: Checks) {
    all.enter();
    checks::child();
    hostile_beside::child();
}

/// A test that boots the testbed, changed so, and runs these checks there. Ignored unless UNSPIN_E2E=1.
pub fn boot(
    name: impl Into<String>,
    checks: Checks,
    change: impl FnOnce(&mut Options) + Send + 'static,
) -> Trial {
    let boot = Trial::test(name, move || {
        print!("{}", checks.boot_with(change)?);
        Ok(())
    });
    boot.with_ignored_flag(!Checks::wanted())
}
