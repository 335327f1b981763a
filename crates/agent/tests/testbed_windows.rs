// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets the pause-loop windows of real VMs: boots the testbed with this test binary as PID 1 and the module unspin_ple.
//!
//! Needs what `make setup` and `make ple-module` put into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets,
//! and without the module.

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{
    Input, Machine, Options, Qemu, cache_from_environment,
    self_test::{Checks, enter},
};

#[path = "windows/checks.rs"]
mod checks;
#[path = "observer/vms.rs"]
#[allow(dead_code, reason = "the observer's checks use the rest")]
mod vms;

/// A KVM that leaves windows alone.
const CHECKS: Checks = Checks {
    boot: "WINDOWS",
    only: None,
    qemu: Qemu::Unspin,
    kvm_amd: "pause_filter_count=16 pause_filter_thresh=65535 pause_filter_count_grow=1 pause_filter_count_shrink=1",
};

fn main() {
    enter(&["WINDOWS"], &[]);
    let module = module();
    let ignored = !Checks::wanted() || module.is_none();
    let boot = Trial::test("every_check_passes_in_the_testbed", move || {
        let bring = |options: &mut Options| options.inputs.extend(module);
        print!("{}", CHECKS.boot_with(bring)?);
        Ok(())
    });
    let trials = vec![boot.with_ignored_flag(ignored)];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// The module, if it has been built.
fn module() -> Option<Input> {
    let cache = cache_from_environment().ok()?;
    let kernel = Machine::find(&cache, Qemu::Unspin).ok()?.kernel_version;
    let host = cache.join("kmod").join(kernel).join("unspin_ple.ko");
    host.is_file().then(|| Input {
        host,
        guest: checks::MODULE.into(),
        executable: false,
    })
}
