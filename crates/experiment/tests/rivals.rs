// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rival's program as a child, and what is said when it does not do what it should. The programs are scripts, and a folder
//! stands for what the kernel tells of sched_ext; `long_rivals` has the real ones.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use unspin_experiment::{
    Error, Session,
    rival::{Attached, Place, Rival},
};

const LIMIT: Duration = Duration::from_secs(20);

/// A folder with `scx_lavd`, a script, and `sys/`, where nobody is attached.
struct Stage(tempfile::TempDir);

impl Stage {
    /// In the script SYS is the folder of sched_ext.
    fn new(script: &str) -> Stage {
        let stage = Stage(tempfile::tempdir().expect("a folder"));
        let folder = stage.0.path();
        fs::create_dir_all(folder.join("sys/root")).expect("made");
        stage.says("state", "disabled");
        stage.says("enable_seq", "7");
        fs::write(folder.join("rivals.tsv"), "scx_lavd\t1.1.4\tGPL-2.0-only\n").expect("written");
        let script = format!("#!/bin/sh\nSYS={}\n{script}\n", stage.sys().display());
        let program = folder.join("scx_lavd");
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
        stage
    }

    fn sys(&self) -> std::path::PathBuf {
        self.0.path().join("sys")
    }

    fn says(&self, file: &str, text: &str) {
        fs::write(self.sys().join(file), format!("{text}\n")).expect("written");
    }

    fn start(&self, limit: Duration) -> Result<Attached, Error> {
        let place = Place::below(Rival::Lavd, self.0.path().to_owned(), false).expect("built");
        Attached::start_where(&place, &self.sys(), limit, &Session::quiet())
    }

    /// What is said of an error that must be.
    #[track_caller]
    fn refuses(&self, limit: Duration) -> String {
        let error = self.start(limit).err().expect("it is no scheduler");
        assert!(matches!(error, Error::Failed(_)), "{error}");
        error.to_string()
    }
}

/// Is attached until SIGINT, as they are.
const GOOD: &str = "
    trap 'echo disabled >$SYS/state; rm $SYS/root/ops; echo bye; exit 0' INT
    echo hello
    echo lavd_1.1.4_x86_64_unknown_linux_gnu >$SYS/root/ops
    echo enabled >$SYS/state
    while :; do sleep 0.01; done";

fn state(stage: &Stage) -> String {
    fs::read_to_string(stage.sys().join("state")).expect("it is there")
}

#[test]
fn it_schedules_until_it_is_ended() {
    let stage = Stage::new(GOOD);
    let mut attached = stage.start(LIMIT).expect("it is attached");
    assert_eq!(state(&stage), "enabled\n");
    attached.still_attached().expect("it is");
    attached.end().expect("it goes");
    assert_eq!(state(&stage), "disabled\n");
    // Also when whoever measures it fails.
    drop(stage.start(LIMIT).expect("it is attached again"));
    assert_eq!(state(&stage), "disabled\n");
}

#[test]
fn one_that_ends_early_is_quoted() {
    let stage = Stage::new("echo 'libbpf: the verifier refused it' >&2; exit 3");
    let said = stage.refuses(LIMIT);
    for piece in [
        "the rival scx_lavd ended before it was attached",
        "exit status: 3",
        "the verifier refused it",
    ] {
        assert!(said.contains(piece), "{said}");
    }
}

#[test]
fn one_that_is_never_attached_is_given_up() {
    let stage = Stage::new("echo waiting; while :; do sleep 0.01; done");
    let said = stage.refuses(Duration::from_secs(1));
    assert!(
        said.contains("was not attached within 1 s") && said.contains("waiting"),
        "{said}"
    );
    // Another one's name is not its own.
    let other = Stage::new(&GOOD.replace("lavd_", "rusty_"));
    let said = other.refuses(Duration::from_secs(1));
    assert!(said.contains("was not attached within 1 s"), "{said}");
    assert_eq!(state(&other), "disabled\n");
}

#[test]
fn one_that_does_not_hear_is_killed_while_it_still_counts_as_attached() {
    let stage = Stage::new("trap '' INT\nwhile :; do sleep 0.01; done");
    let began = Instant::now();
    let said = stage.refuses(Duration::from_millis(100));
    assert!(said.contains("its log ends:\n  (it is empty)"), "{said}");
    // SIGINT's time, and not much more.
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_the_kernel_sends_away_is_not_measured() {
    let stage = Stage::new(&format!(
        "( while [ ! -e $SYS/bark ]; do sleep 0.01; done; rm $SYS/root/ops; echo disabled >$SYS/state ) &\n{GOOD}"
    ));
    let mut attached = stage.start(LIMIT).expect("it is attached");
    stage.says("bark", "");
    let said = loop {
        match attached.still_attached() {
            Ok(()) => thread::sleep(Duration::from_millis(10)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        said.contains("was sent away by the kernel while it was measured")
            && said.contains("hello"),
        "{said}"
    );
}

#[test]
fn one_that_restarts_itself_or_ends_is_not_measured() {
    let stage = Stage::new(GOOD);
    let mut attached = stage.start(LIMIT).expect("it is attached");
    stage.says("enable_seq", "8");
    let said = attached
        .still_attached()
        .expect_err("once more")
        .to_string();
    assert!(said.contains("detached and attached again"), "{said}");
    drop(attached);
    let stage = Stage::new(&format!(
        "( while [ ! -e $SYS/end ]; do sleep 0.01; done; kill -9 $$ ) &\n{GOOD}"
    ));
    let mut attached = stage.start(LIMIT).expect("it is attached");
    stage.says("end", "");
    let said = loop {
        match attached.still_attached() {
            Ok(()) => thread::sleep(Duration::from_millis(10)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        said.contains("ended while it was measured (signal: 9"),
        "{said}"
    );
}

#[test]
fn others_are_not_pushed_aside_and_kernels_without_sched_ext_are_named() {
    let stage = Stage::new(GOOD);
    stage.says("state", "enabled");
    stage.says("root/ops", "unspin_1");
    let said = stage.refuses(Duration::from_millis(50));
    assert!(
        said.contains("another sched_ext scheduler, `unspin_1`, runs on this host (enabled)"),
        "{said}"
    );
    fs::remove_file(stage.sys().join("state")).expect("it was there");
    let said = stage.refuses(LIMIT);
    assert!(said.contains("this kernel has no sched_ext"), "{said}");
}

#[test]
fn an_interrupt_ends_the_wait_and_the_program() {
    let stage = Stage::new("trap 'echo gone >$SYS/gone; exit 0' INT\nwhile :; do sleep 0.01; done");
    let session = Session::quiet();
    let interrupt = session.interrupt.clone();
    let interrupter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        interrupt.store(true, Ordering::Relaxed);
    });
    let place = Place::below(Rival::Lavd, stage.0.path().to_owned(), false).expect("built");
    let ended = Attached::start_where(&place, &stage.sys(), LIMIT, &session);
    assert!(matches!(ended, Err(Error::Interrupted)));
    interrupter.join().expect("it sets a flag");
    assert!(Path::new(&stage.sys().join("gone")).exists());
}
