// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library under ThreadSanitizer: threads that come and go, more of them than have a place to sleep.

use std::process::Command;

use crate::tree::{root, run, succeed};

#[test]
fn no_lock_races_and_no_lock_at_all_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = "-O1 -g -fsanitize=thread";
    succeed(
        Command::new(root().join("lib/build"))
            .arg(folder.path())
            .env("CC", "clang-19")
            .env("CFLAGS", flags),
    );
    let program = folder.path().join("race");
    succeed(
        Command::new("clang-19")
            .args("-std=gnu11 -D_GNU_SOURCE".split(' '))
            .args(flags.split(' '))
            .arg("-I")
            .arg(root().join("lib/include"))
            .arg(root().join("lib/tests/race.c"))
            .arg(folder.path().join("libunspin.a"))
            .arg("-o")
            .arg(&program),
    );
    assert_eq!(succeed(&mut Command::new(&program)), "ok\n");
    let control = run(Command::new(&program).arg("unlocked"));
    assert!(!control.success, "the control must race: {}", control.out);
    assert!(
        control.err.contains("ThreadSanitizer: data race"),
        "{}",
        control.err
    );
}
