// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the scheduler and what they share. `testbed_steerer`, `long_steerer` and `long_kernel_boots` each run some of
//! them, in boots of their own.

pub mod auto;
pub mod candidates;
pub mod cgroups;
pub mod checks;
pub mod costs;
pub mod debooster;
pub mod dry;
pub mod ecs;
pub mod failure;
pub mod four_cpus;
pub mod helping;
pub mod host;
pub mod hostile;
pub mod isolated;
#[path = "../observer/vms.rs"]
pub mod observer_vms;
pub mod only_vms;
pub mod pv_pages;
pub mod raw_vm;
pub mod services;
pub mod stress;
pub mod tune;
pub mod vm_policies;
pub mod vms;
pub mod wakeups;
pub mod watchdog;

use std::time::Duration;

use libtest_mimic::Trial;
use unspin_testbed::{
    Options, Qemu,
    self_test::{self, Checks},
};

/// Every boot of the checks in this folder; which binary boots which says its `main`.
pub const BOOTS: [&str; 12] = [
    "STEERER",
    "WAKEUPS",
    "GUESTS",
    "FAILURE",
    "STEERER_LONG",
    "SEEDED",
    "FOUR_CPUS",
    "FOUR_CACHES",
    "ISOLATED_CPU",
    "ISOLATED_AT_BOOT",
    "OTHER_KERNELS",
    "VMX",
];

/// The checks of that boot, where every PAUSE exits.
pub const fn where_every_pause_exits(boot: &'static str) -> Checks {
    Checks {
        boot,
        only: None,
        qemu: Qemu::Stock,
        kvm_amd: "",
    }
}

/// First thing in `main`, with the boots of the binary: inside the testbed, or as a child of a check, it does not return.
pub fn enter(boots: &[&str]) {
    self_test::enter(boots, &BOOTS);
    checks::child();
    hostile::beside::child();
    failure::memory::child();
}

/// What one boot may take: on the slowest machine that CI had one took 415 s, and the longest was not done after 360.
/// .config/nextest.toml waits a little longer.
const BOOT_LIMIT: Duration = Duration::from_secs(1200);

/// A test that boots the testbed, changed so, and runs these checks there. Ignored unless UNSPIN_E2E=1.
pub fn boot(
    name: impl Into<String>,
    checks: Checks,
    change: impl FnOnce(&mut Options) + Send + 'static,
) -> Trial {
    let boot = Trial::test(name, move || {
        let changed = |options: &mut Options| {
            options.time_limit = BOOT_LIMIT;
            change(options);
        };
        print!("{}", checks.boot_with(changed)?);
        Ok(())
    });
    boot.with_ignored_flag(!Checks::wanted())
}
