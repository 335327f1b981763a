// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other kernels than the testbed's own, booted (`setup/kernels` fetches them): the scheduler steers there, or says exactly why
//! not and leaves the host alone.

#[allow(dead_code, reason = "other tests run the other checks")]
mod steerer;

use libtest_mimic::Arguments;
use steerer::{boot, enter, host, where_every_pause_exits};
use unspin_agent::{SteerError, SteerOptions, Steerer};
use unspin_testbed::{check, self_test::Checks};

/// Folder of the kernel, and the check.
static KERNELS: [(&str, &str); 4] = [
    ("7.3.4+deb13-cloud-amd64", "a_loan_drains_the_convoy"),
    ("7.2.12+deb13-cloud-amd64", "it_says_which_functions_lack"),
    ("6.18.15+deb13-cloud-amd64", "it_says_which_functions_lack"),
    ("6.12.107+deb13-cloud-amd64", "it_says_that_sched_ext_lacks"),
];

fn refusal() -> SteerError {
    match Steerer::attach(&SteerOptions::default()) {
        Ok(_) => panic!("it attached"),
        Err(error) => {
            println!("  {error}");
            error
        }
    }
}

check!(OTHER_KERNELS: it_says_which_functions_lack);
/// And the kernel's own scheduler has never left.
fn it_says_which_functions_lack() {
    let error = refusal();
    let SteerError::MissingFunctions { functions, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(
        !functions.is_empty()
            && functions
                .iter()
                .all(|name| error.to_string().contains(name))
    );
    assert_eq!(host::state(), "disabled");
}

check!(OTHER_KERNELS: it_says_that_sched_ext_lacks);
fn it_says_that_sched_ext_lacks() {
    let error = refusal();
    assert!(matches!(error, SteerError::NoSchedExt { .. }), "{error:?}");
}

fn main() {
    // A check of STEERER that runs here, too, is listed by the program that boots all of them.
    enter(&["OTHER_KERNELS"]);
    let trials = KERNELS.iter().map(|(kernel, check)| {
        let checks = Checks {
            only: Some(check),
            ..where_every_pause_exits("OTHER_KERNELS")
        };
        boot(*kernel, checks, move |options| {
            options.kernel = Some(options.cache.join("kernels").join(kernel));
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
