// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `check_trace.py`.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::common::Expected;

/// The interpreter with Perfetto's classes.
fn python() -> PathBuf {
    let folder = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = folder("UNSPIN_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("unspin")))
        .or_else(|| Some(folder("HOME")?.join(".cache/unspin")))
        .expect("a cache folder");
    let python = cache.join("python/bin/python");
    assert!(
        python.exists(),
        "{} is missing: `make setup` makes it",
        python.display()
    );
    python
}

/// Runs the checker on these files.
pub fn check(traces: &[PathBuf]) -> Output {
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto/check_trace.py");
    let mut command = Command::new(python());
    command.arg(checker).args(traces);
    command.output().expect("the checker starts")
}

/// Fails unless all are valid.
pub fn check_all(traces: &[PathBuf]) {
    let output = check(traces);
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert_eq!(
        said.lines().filter(|line| line.ends_with(": ok")).count(),
        traces.len()
    );
}

/// Writes a trace and the numbers of things that it must contain.
pub fn save(folder: &Path, name: &str, trace: &[u8], expected: &Expected) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, trace).expect("a trace is written");
    let json = serde_json::to_string(expected).expect("JSON");
    fs::write(folder.join(format!("{name}.json")), json).expect("its expectation is written");
    path
}
