// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every lock under ThreadSanitizer: what it protects is plain memory, so an order that is too weak is a data race
//! even where this machine's own memory model hides it.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use unspin_abi::LockKind;

/// The status that ThreadSanitizer is told to exit with when it saw a race.
const RACE: i32 = 66;

/// `UNSPIN_CLANG`, or clang-19, or clang.
fn clang() -> String {
    let works = |name: &String| {
        let output = Command::new(name).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    let candidates = env::var("UNSPIN_CLANG").ok().into_iter();
    let usual = ["clang-19", "clang"].map(str::to_owned);
    candidates
        .chain(usual)
        .find(works)
        .expect("clang with its sanitizers is needed: apt install clang-19 libclang-rt-19-dev")
}

/// Compiles one source file with ThreadSanitizer and returns the object.
fn compile(source: &Path, object: PathBuf, defines: &[String]) -> PathBuf {
    let output = Command::new(clang())
        .args([
            "-std=gnu11",
            "-O1",
            "-g",
            "-fsanitize=thread",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .arg("-DUNSPIN_PLATFORM_HEADER=\"threads.h\"")
        .args(defines)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()
        .expect("clang runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}:\n{errors}", source.display());
    object
}

/// Compiles the drivers of every lock, and of none, into one program.
fn build(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut objects = vec![
        compile(&root.join("c/drivers.c"), folder.join("drivers.o"), &[]),
        compile(&root.join("c/table.c"), folder.join("table.o"), &[]),
        compile(&root.join("tests/c/race.c"), folder.join("race.o"), &[]),
    ];
    let locks = LockKind::all().map(|kind| {
        let here = root.join("../../locks").join(kind.name());
        let is_here = here.with_extension("h").exists();
        let folder = if is_here { "" } else { "blocking/" };
        (
            kind.name(),
            format!("../../../locks/{folder}{}.h", kind.name()),
        )
    });
    for (name, header) in locks.chain([("broken", "../tests/c/broken.h".to_owned())]) {
        let defines = [
            format!("-DDRIVER_LOCK={name}"),
            format!("-DDRIVER_LOCK_HEADER=\"{header}\""),
        ];
        let object = folder.join(name).with_extension("o");
        objects.push(compile(&root.join("c/driver.c"), object, &defines));
    }
    let program = folder.join("race");
    let status = Command::new(clang())
        .arg("-fsanitize=thread")
        .args(&objects)
        .arg("-o")
        .arg(&program)
        .status()
        .expect("clang runs");
    assert!(
        status.success(),
        "linking needs libclang-rt-19-dev: apt install it"
    );
    program
}

/// Runs one lock; a run that does not end fails after a minute.
fn race(program: &Path, lock: &str, threads: u32, spins: u32) -> Output {
    let mut child = Command::new(program)
        .args([lock, &threads.to_string(), &spins.to_string()])
        .env("TSAN_OPTIONS", format!("exitcode={RACE}"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program runs");
    for _ in 0..6_000 {
        if child.try_wait().expect("it is our child").is_some() {
            return child.wait_with_output().expect("it has ended");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it is our child");
    child.wait().expect("it is our child");
    panic!("{lock}, {threads} threads: not done after a minute");
}

#[test]
fn no_lock_races_and_no_lock_at_all_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = build(folder.path());
    let broken = race(&program, "broken", 2, 300);
    let report = String::from_utf8_lossy(&broken.stderr);
    assert_eq!(
        broken.status.code(),
        Some(RACE),
        "the control must race:\n{report}"
    );
    assert!(report.contains("ThreadSanitizer: data race"), "{report}");
    for kind in LockKind::all() {
        for (threads, spins) in [(2, 400), (3, 60)] {
            let output = race(&program, kind.name(), threads, spins);
            let said = String::from_utf8_lossy(&output.stdout);
            let report = String::from_utf8_lossy(&output.stderr);
            let name = kind.name();
            assert_eq!(
                output.status.code(),
                Some(0),
                "{name} {threads}: {said}{report}"
            );
            assert!(said.starts_with(name), "{said}");
            assert!(
                !report.contains("ThreadSanitizer"),
                "{name} {threads}: {report}"
            );
        }
    }
}
