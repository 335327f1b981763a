// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steers a real kernel: boots the testbed with this test binary as PID 1 and runs checks of `steerer/` in six boots,
//! on one clock that does not depend on this machine (icount), with PAUSE exits that are all real.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

#[allow(dead_code, reason = "other tests run the other checks")]
mod steerer;

use libtest_mimic::Arguments;
use steerer::{boot, enter, failure, where_every_pause_exits};
use unspin_testbed::{Qemu, Topology, Vendor};

fn main() {
    // Two CPUs: the most part, and, apart so that boots run side by side, who wakes up, what VMs get, and what ends a
    // scheduler. Four CPUs without a common cache. Two Intel CPUs.
    enter(&[
        "STEERER",
        "WAKEUPS",
        "GUESTS",
        "FAILURE",
        "FOUR_CACHES",
        "VMX",
    ]);
    let boots = [
        ("every_check_passes_in_the_testbed", "STEERER"),
        ("and_of_wakeups", "WAKEUPS"),
        ("and_of_guests", "GUESTS"),
    ];
    let trials = boots.map(|(name, of)| boot(name, where_every_pause_exits(of), |_| ()));
    let failures = boot(
        "and_of_failures",
        where_every_pause_exits("FAILURE"),
        failure::bring,
    );
    let caches = boot(
        "and_of_caches",
        where_every_pause_exits("FOUR_CACHES"),
        |options| {
            options.topology = "2x2x1x1".parse().ok();
            options.cpus = options.topology.map_or(0, Topology::cpus);
        },
    );
    let intel = boot("and_of_vmx", where_every_pause_exits("VMX"), |options| {
        options.vendor = Vendor::Intel;
        options.qemu = Qemu::Unspin; // neither: it runs in Bochs
        // 200 PAUSEs, as far apart as they may be: docs/intel.md.
        let parameters = "ple_gap=65535 ple_window=1000 ple_window_grow=0";
        let parameters = ("kvm_intel".to_owned(), parameters.to_owned());
        options.module_parameters.extend([parameters]);
    });
    let trials = trials
        .into_iter()
        .chain([failures, caches, intel])
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
