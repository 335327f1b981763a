// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin preload`: the program's output, exit status and signals are its own; the report says what was waited for.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

use serde_json::Value;

fn preload(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unspin"));
    command.arg("preload").args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    preload(arguments).output().expect("started")
}

fn compile(folder: &Path, source: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lib/tests/preload");
    let program = folder.join(source);
    let status = Command::new("clang-19")
        .args(["-O1", "-D_GNU_SOURCE", "-pthread"])
        .arg(sources.join(source).with_extension("c"))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("clang-19");
    assert!(status.success());
    program
}

#[test]
fn output_and_exit_status_are_the_programs() {
    for reports in [&[][..], &["--report"]] {
        let with = |program: &[&str]| output(&[reports, program].concat());
        let ended = with(&["sh", "-c", "echo out; echo err >&2; exit 7"]);
        assert_eq!(ended.status.code(), Some(7));
        assert_eq!(ended.stdout, b"out\n");
        assert!(ended.stderr.starts_with(b"err\n"));
        assert_eq!(with(&["true"]).status.code(), Some(0));
        let ended = with(&["sh", "-c", "kill -SEGV $$"]);
        assert_eq!(ended.status.signal(), Some(libc::SIGSEGV), "{ended:?}");
        // Options after the program are the program's.
        assert_eq!(with(&["echo", "--report", "-n"]).stdout, b"--report -n\n");
    }
    assert!(output(&["true"]).stderr.is_empty());
}

#[test]
fn signals_are_passed_on() {
    let script = "trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child = preload(&["--report", "sh", "-c", script]);
    let child = child
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    // The shell has set its trap when it says so; what it says is read below.
    thread::sleep(Duration::from_millis(700));
    // SAFETY: a child of this process that has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let ended = child.wait_with_output().expect("its output");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "ready\ngot it\n");
    assert_eq!(ended.status.code(), Some(5));
}

#[test]
fn the_report_names_locks_and_what_was_left_to_libc() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let program = compile(folder.path(), "stress");
    let program = program.to_str().expect("text");
    let out = file.to_str().expect("text");
    let ended = output(&["--json", "--out", out, program, "1000"]);
    assert_eq!(ended.stdout, b"ok\n", "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let report: Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("written")).expect("JSON");
    assert_eq!(report["command"], "preload");
    let rows = report["rows"].as_array().expect("rows");
    let locks: Vec<&Value> = rows
        .iter()
        .filter(|row| row["table"] == "preload_lock")
        .collect();
    let of_kind = |kind: &str| locks.iter().find(|row| row["kind"] == kind).copied();
    let condition = of_kind("condition variable").expect("the queue waits");
    assert!(condition["contended"].as_u64() > Some(0) && condition["parks"].as_u64() > Some(0));
    let site = condition["first_site"].as_str().expect("text");
    let functions = [
        "produce+",
        "consume+",
        "wait_for_ever+",
        "pass_barriers+",
        "exchange+",
        "use_both+",
        "take_tokens+",
    ];
    assert!(
        functions.iter().any(|function| site.starts_with(function)),
        "{site}"
    );
    assert_eq!(
        condition["module"].as_str(),
        fs::canonicalize(program).expect("there").to_str()
    );
    let left = rows
        .iter()
        .find(|row| row["table"] == "preload")
        .expect("one");
    assert_eq!(left["robust_mutexes"], 0);
    // It forks.
    assert!(left["processes"].as_u64() > Some(10));

    let program = compile(folder.path(), "shared");
    let ended = output(&["--json", program.to_str().expect("text")]);
    assert_eq!(ended.stdout, b"ok\n", "{ended:?}");
    let report: Value = serde_json::from_slice(&ended.stderr).expect("JSON on standard error");
    let rows = report["rows"].as_array().expect("rows");
    let left = rows
        .iter()
        .find(|row| row["table"] == "preload")
        .expect("one");
    for kind in [
        "robust_mutexes",
        "priority_mutexes",
        "shared_mutexes",
        "shared_conditions",
        "shared_rwlocks",
    ] {
        assert_eq!(left[kind], 1, "{kind}");
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    let refused = |arguments: &[&str], said: &str| {
        let ended = output(arguments);
        let error = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && error.contains(said), "{error}");
        assert!(ended.stdout.is_empty());
    };
    refused(&["no-such-program-here"], "no such program");
    refused(&[env!("CARGO_BIN_EXE_unspin"), "help"], "linked statically");
    refused(&["/etc/passwd"], "not executable");
    refused(&[], "PROGRAM");
    refused(
        &["--out", "/no/such/folder/file", "true"],
        "cannot write /no/such/folder/file",
    );
    let ended = preload(&["true"])
        .env("XDG_CACHE_HOME", "/tmp/a b")
        .output()
        .expect("started");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("LD_PRELOAD cannot name"));
}
