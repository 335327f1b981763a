// SPDX-License-Identifier: MIT OR Apache-2.0
//! A canary on a real kernel: boots the testbed with this test binary as PID 1. One planted harm; the others are in `long_canary`.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

#[allow(dead_code, reason = "the long checks use the rest")]
mod canary;

use canary::{boot, enter, with_a_window};
use libtest_mimic::Arguments;

fn main() {
    enter(&["CANARY"]);
    let boot = boot("planted_harm_is_undone", with_a_window("CANARY"), true);
    libtest_mimic::run(&Arguments::from_args(), vec![boot]).exit();
}
