// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the canary on a real KVM: what is good is kept, and planted harm is undone. `testbed_canary` and `long_canary` each run some of
//! them, in boots of their own.

pub mod good;
pub mod harms;
pub mod host;
#[path = "../../../agent/tests/observer/vms.rs"]
#[allow(dead_code, reason = "the observer's checks use the rest")]
mod vms;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use libtest_mimic::Trial;
use unspin_agent::UserPolicy;
use unspin_testbed::{
    Input, Options, Qemu,
    self_test::{self, Checks},
};

/// Every boot of the checks in this folder; which binary boots which says its `main`.
const BOOTS: [&str; 2] = ["CANARY", "CANARY_LONG"];

/// Policies of users' own, in the testbed.
const POLICIES: [&str; 2] = ["refusing", "erring"];

/// First thing in `main`, with the boots of the binary: inside the testbed, or as a child of a check, it does not return.
pub fn enter(boots: &[&str]) {
    self_test::enter(boots, &BOOTS);
    host::child();
}

/// A test that boots the testbed, with the policies of users' own if they are wanted, and runs these checks there. Ignored unless
/// UNSPIN_E2E=1.
pub fn boot(name: impl Into<String>, checks: Checks, with_policies: bool) -> Trial {
    let change = move |options: &mut Options| {
        bring_a_shell(options);
        if with_policies {
            bring_policies(options);
        }
        options.time_limit = Duration::from_secs(3600);
    };
    let boot = Trial::test(name, move || {
        print!("{}", checks.boot_with(change)?);
        Ok(())
    });
    boot.with_ignored_flag(!Checks::wanted())
}

/// The checks of that boot, with a window of 200 PAUSEs that KVM leaves alone, as in scenarios/compare/ticket.toml.
pub const fn with_a_window(boot: &'static str) -> Checks {
    Checks {
        boot,
        only: None,
        qemu: Qemu::Unspin,
        kvm_amd: "pause_filter_count=200 pause_filter_thresh=65535 pause_filter_count_grow=1 pause_filter_count_shrink=1",
    }
}

/// The testbed has no shell, and probes are run by one: this machine's.
fn bring_a_shell(options: &mut Options) {
    options.inputs.extend(Input::program(Path::new("/bin/sh")));
}

/// Compiles users' policies here: the testbed has no compiler.
fn bring_policies(options: &mut Options) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = [
        here.join("tests/canary/refusing.c"),
        here.join("../agent/tests/steerer/failure/erring.c"),
    ];
    for (name, source) in POLICIES.into_iter().zip(sources) {
        let policy = match UserPolicy::compile(&source, false) {
            Ok(policy) => policy,
            Err(error) => panic!("{error}"),
        };
        let object = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("canary-{name}.o"));
        let new = object.with_extension(std::process::id().to_string());
        // Whoever boots at the same time finds one or the other, both whole.
        std::fs::write(&new, policy.object()).expect("there is room");
        std::fs::rename(&new, &object).expect("one folder");
        options.inputs.push(Input {
            host: object,
            guest: format!("/{name}.o").into(),
            executable: false,
        });
    }
}
