// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes real VMs: boots the testbed with this test binary as PID 1 and runs every check of `observer/checks.rs` in
//! two boots, on one clock that does not depend on this machine (icount).
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{
    Qemu,
    self_test::{Checks, enter},
};

#[path = "observer/checks.rs"]
mod checks;
#[path = "observer/churn.rs"]
#[allow(dead_code, reason = "the long form is long_observer's")]
mod churn;
#[path = "observer/costs.rs"]
mod costs;
#[path = "observer/decisions.rs"]
mod decisions;
#[path = "observer/flight.rs"]
mod flight;
#[path = "observer/ipis.rs"]
mod ipis;
#[path = "observer/join.rs"]
mod join;
#[path = "observer/liar.rs"]
mod liar;
#[path = "observer/losses.rs"]
mod losses;
#[path = "observer/pauses.rs"]
mod pauses;
#[path = "observer/pv_pages.rs"]
mod pv_pages;
#[path = "observer/stops.rs"]
mod stops;
#[path = "observer/vms.rs"]
#[allow(dead_code, reason = "the scheduler's checks use the rest")]
mod vms;
#[path = "observer/watch.rs"]
mod watch;

/// Every PAUSE exits here, so that counters can be compared with what the guests counted.
const COUNTED: Checks = Checks {
    boot: "COUNTED",
    only: None,
    qemu: Qemu::Stock,
    kvm_amd: "",
};

/// A window of 64 PAUSEs that KVM leaves alone; interrupts as many as one likes.
const INTERRUPTED: Checks = Checks {
    boot: "INTERRUPTED",
    only: None,
    qemu: Qemu::Unspin,
    kvm_amd: "pause_filter_count=64 pause_filter_thresh=65535 pause_filter_count_grow=1 pause_filter_count_shrink=1",
};

fn main() {
    enter(&["COUNTED", "INTERRUPTED"], &["OBSERVER_LONG"]);
    if std::env::args().nth(1).as_deref() == Some("attach") {
        checks::attach_and_say();
    }
    if std::env::args().nth(1).as_deref() == Some("vmm") {
        stops::be_a_vmm();
    }
    let boot = |name: &str, checks: Checks| {
        let boot = Trial::test(name, move || {
            print!("{}", checks.boot()?);
            Ok(())
        });
        boot.with_ignored_flag(!Checks::wanted())
    };
    let trials = vec![
        boot("every_check_passes_where_every_pause_exits", COUNTED),
        boot("every_check_passes_with_many_interrupts", INTERRUPTED),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
