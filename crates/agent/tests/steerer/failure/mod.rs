// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ends a scheduler, or keeps one from being attached: the host is the kernel's own scheduler's at once, and who asked is told
//! why.

pub mod cpus;
pub mod ends;
pub mod memory;
pub mod two;

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

use unspin_agent::UserPolicy;
use unspin_testbed::{Input, Options};

/// Where the testbed has the policy `erring`.
pub const ERRING: &str = "/erring.o";

/// Compiles the policy, and has the testbed have it.
#[allow(dead_code, reason = "other tests boot other checks")]
pub fn bring(options: &mut Options) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/steerer/failure/erring.c");
    let policy = match UserPolicy::compile(&source, false) {
        Ok(policy) => policy,
        Err(error) => panic!("{error}"),
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (object, new) = (
        folder.join("erring.o"),
        folder.join(format!("erring-{}.o", process::id())),
    );
    // Whoever boots at the same time finds one or the other, both whole.
    fs::write(&new, policy.object()).expect("there is room");
    fs::rename(&new, &object).expect("one folder");
    options.inputs.push(Input {
        host: object,
        guest: ERRING.into(),
        executable: false,
    });
}
