// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real VMs: boots the testbed with this test binary as PID 1 and runs every check of `kvm/`, on a clock that does not
//! depend on this machine (icount), but for those that are about a thread for each CPU.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

#[path = "kvm/calibration.rs"]
mod calibration;
#[path = "kvm/emulator.rs"]
mod emulator;
#[path = "kvm/exits.rs"]
mod exits;
#[path = "kvm/failures.rs"]
mod failures;
#[path = "kvm/support.rs"]
mod support;
#[path = "kvm/tasks.rs"]
mod tasks;
#[path = "kvm/work.rs"]
mod work;

use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{
    Options, Qemu,
    self_test::{Checks, enter},
};

fn main() {
    enter(&["KVM", "KVM_THREADS"], &[]);
    let checks = |boot| Checks {
        boot,
        only: None,
        qemu: Qemu::Unspin,
        kvm_amd: "",
    };
    let boot = |name: &str, checks: Checks, change: fn(&mut Options)| {
        let boot = Trial::test(name, move || {
            print!("{}", checks.boot_with(change)?);
            Ok(())
        });
        boot.with_ignored_flag(!Checks::wanted())
    };
    let trials = vec![
        boot("every_check_passes_in_the_testbed", checks("KVM"), |_| ()),
        boot(
            "every_check_passes_with_a_thread_for_each_cpu",
            checks("KVM_THREADS"),
            |options| {
                options.deterministic = false;
                options.time_limit = Duration::from_secs(60);
            },
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
