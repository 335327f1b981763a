// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs of lib/tests/preload with the library: results are those of libc, nothing is lost, nothing hangs.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Longer than any of them takes on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(240);

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lib/tests/preload")
}

/// A folder for what is compiled; it stays until the tests end.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| tempfile::tempdir().expect("a folder"))
        .path()
}

/// A program of that source, linked dynamically.
fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let program = folder().join(name);
    let compiler = match source.ends_with(".cpp") {
        true => "clang++-19",
        false => "clang-19",
    };
    let output = Command::new(compiler)
        .args([
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-D_GNU_SOURCE",
            "-pthread",
        ])
        .args(flags)
        .arg(sources().join(source))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source}: {said}");
    program
}

fn c(name: &str) -> PathBuf {
    compile(&format!("{name}.c"), name, &["-std=gnu11"])
}

/// Runs it, with the library or without; one that hangs is killed, and fails the test.
fn run(program: &Path, arguments: &[&str], preloaded: bool) -> Output {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    if preloaded {
        command.env("LD_PRELOAD", unspin_preload::place().expect("written"));
    }
    let mut child = command.spawn().expect("started");
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > LIMIT {
            child.kill().expect("killed");
            panic!("{} {arguments:?} hangs", program.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("its output")
}

fn text(output: &Output) -> String {
    format!(
        "{}{}{:?}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status
    )
}

fn says_ok(program: &Path, arguments: &[&str], preloaded: bool) {
    let output = run(program, arguments, preloaded);
    assert!(
        output.status.success() && output.stdout == b"ok\n" && output.stderr.is_empty(),
        "{}: {}",
        program.display(),
        text(&output)
    );
}

/// Each function on objects of each kind; what is printed is not there: a call that hangs fails the test.
#[test]
fn results_are_those_of_libc() {
    let program = c("results");
    let (alone, with) = (run(&program, &[], false), run(&program, &[], true));
    assert!(alone.status.success() && alone.stdout.len() > 20_000);
    let lines =
        |output: &Output| -> Vec<String> { text(output).lines().map(str::to_owned).collect() };
    for (number, (alone, with)) in lines(&alone).iter().zip(lines(&with)).enumerate() {
        assert_eq!(*alone, with, "line {number}");
    }
    assert_eq!(text(&alone), text(&with));
}

#[test]
fn nothing_is_lost_under_signals_forks_and_cancellations() {
    let program = c("stress");
    says_ok(&program, &["1000"], true);
}

#[test]
fn no_function_allocates_memory() {
    says_ok(&c("memory"), &[], true);
}

#[test]
fn shared_robust_and_inheriting_mutexes_are_libcs() {
    let program = c("shared");
    says_ok(&program, &[], false);
    says_ok(&program, &[], true);
}

#[test]
fn old_versions_and_loaded_libraries_use_the_same_objects() {
    let plugin = compile("versions.c", "plugin.so", &["-shared", "-fPIC", "-DPLUGIN"]);
    let program = c("versions");
    says_ok(&program, &[plugin.to_str().expect("text")], true);
}

#[test]
fn the_standard_library_of_cpp_uses_it() {
    let program = compile("standard.cpp", "standard", &["-std=c++17"]);
    says_ok(&program, &[], false);
    says_ok(&program, &[], true);
}

/// What functions of pthread libc has that take these objects, all are interposed: one that is not would see an object of ours.
#[test]
fn every_function_on_these_objects_is_interposed() {
    let defined = |file: &Path| -> Vec<String> {
        let output = Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(file)
            .output();
        let output = output.expect("binutils");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(2));
        names
            .map(|name| name.split('@').next().expect("a name").to_owned())
            .collect()
    };
    // Where the C library is says the dynamic linker.
    let of = Command::new("ldd").arg("/bin/sh").output().expect("ldd");
    let of = String::from_utf8_lossy(&of.stdout).into_owned();
    let libc = of
        .split_whitespace()
        .find(|word| word.starts_with('/') && word.contains("libc.so"))
        .expect("a shell uses libc");
    let ours = defined(&unspin_preload::place().expect("written"));
    let objects = ["mutex_", "cond_", "rwlock_", "spin_"];
    // These read or change what an object was made with, which is where libc has it, or are for robust ones.
    let left = [
        "getprioceiling",
        "setprioceiling",
        "consistent",
        "consistent_np",
    ];
    for name in defined(Path::new(libc)) {
        let plain = name.trim_start_matches("__");
        let rest = plain.strip_prefix("pthread_");
        let on_object = rest
            .is_some_and(|rest| objects.iter().any(|object| rest.starts_with(object)))
            || plain.starts_with("mtx_")
            || plain.starts_with("cnd_");
        let is_left = left.iter().any(|end| plain.ends_with(end));
        if on_object && !is_left {
            assert!(ours.contains(&name), "{name} is not interposed");
        }
    }
}
