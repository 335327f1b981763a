// SPDX-License-Identifier: MIT OR Apache-2.0
//! Twenty planted harms, each undone within 5 s, and what is no harm. Each in a boot of its own.

#[allow(dead_code, reason = "the short checks use the rest")]
mod canary;

use canary::{boot, enter, with_a_window};
use libtest_mimic::Arguments;
use unspin_testbed::self_test::{Checks, names_of};

fn main() {
    enter(&["CANARY_LONG"]);
    let alone = |check: &'static str| {
        let one = Checks {
            only: Some(check),
            ..with_a_window("CANARY_LONG")
        };
        boot(check, one, check.starts_with("a_users_policy"))
    };
    let trials = names_of("CANARY_LONG").into_iter().map(alone).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
