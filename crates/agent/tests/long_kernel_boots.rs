// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other kernels than the testbed's own, booted (`setup/kernels` fetches them): the scheduler steers there, or says exactly why
//! not and leaves the host alone.

use libtest_mimic::{Arguments, Trial};
use unspin_agent::{SteerError, SteerOptions, Steerer};
use unspin_testbed::{Qemu, cache_from_environment, self_test::Checks};

#[path = "steerer/candidates.rs"]
#[allow(dead_code, reason = "the checks are other tests'")]
mod candidates;
#[path = "steerer/checks.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod checks;
#[path = "steerer/costs.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod costs;
#[path = "steerer/debooster.rs"]
#[allow(dead_code, reason = "the checks are other tests'")]
mod debooster;
#[path = "steerer/dry.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod dry;
#[path = "steerer/ecs_fairness.rs"]
#[allow(dead_code, reason = "the checks are other tests'")]
mod ecs_fairness;
#[path = "steerer/host.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod host;
#[path = "steerer/hostile.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod hostile;
#[path = "observer/vms.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod observer_vms;
#[path = "steerer/stress.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod stress;
#[path = "steerer/vms.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod vms;
#[path = "steerer/watchdog.rs"]
#[allow(dead_code, reason = "the checks are testbed_steerer's")]
mod watchdog;

static CHECKS: [(&str, fn()); 3] = [
    ("a_loan_drains_the_convoy", vms::a_loan_drains_the_convoy),
    ("it_says_which_functions_lack", it_says_which_functions_lack),
    ("it_says_that_sched_ext_lacks", it_says_that_sched_ext_lacks),
];

/// Folder of the kernel, and the check.
static BOOTS: [(&str, usize); 4] = [
    ("7.3.4+deb13-cloud-amd64", 0),
    ("7.2.12+deb13-cloud-amd64", 1),
    ("6.18.15+deb13-cloud-amd64", 1),
    ("6.12.107+deb13-cloud-amd64", 2),
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

fn it_says_that_sched_ext_lacks() {
    let error = refusal();
    assert!(matches!(error, SteerError::NoSchedExt { .. }), "{error:?}");
}

fn main() {
    let all = Checks {
        checks: &CHECKS,
        qemu: Qemu::Stock,
        kvm_amd: "",
    };
    all.enter();
    checks::child();
    let trials = BOOTS.iter().map(|(kernel, check)| {
        let checks = Checks {
            checks: &CHECKS[*check..=*check],
            ..all
        };
        let boot = Trial::test(*kernel, move || {
            let cache = cache_from_environment().map_err(|error| error.to_string())?;
            let said = checks.boot_with(|options| {
                options.kernel = Some(cache.join("kernels").join(kernel));
            });
            print!("{}", said?);
            Ok(())
        });
        boot.with_ignored_flag(!Checks::wanted())
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
