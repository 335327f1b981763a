// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that are ended after some time, and with us, however we end: Ctrl-C, SIGTERM and `kill -9` leave no test and no
//! emulator behind.

use std::time::Duration;

/// The program that a limited command begins with; [`arguments`] and the command itself follow.
pub const PROGRAM: &str = "setpriv";

/// timeout(1) ends what it runs, in a process group of its own, after `limit` (whole seconds, 1 or more), and 10 s later by
/// force; its exit status is 124 or 137 then. The kernel sends it SIGTERM when the thread that started it ends, which it
/// passes on.
pub fn arguments(limit: Duration) -> [String; 5] {
    let seconds = limit.as_secs().to_string();
    [
        "--pdeathsig",
        "TERM",
        "timeout",
        "--kill-after=10",
        &seconds,
    ]
    .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, process::Command, thread, time::Instant};

    use super::*;

    #[test]
    fn a_limited_command_ends_with_who_started_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("process");
        // The one that starts it kills itself as soon as the command runs.
        let starts =
            "file=$1; shift; \"$@\" & until [ -s \"$file\" ]; do sleep 0.02; done; kill -KILL $$";
        let runs = "echo $$ >\"$0\"; exec sleep 600";
        let status = Command::new("sh")
            .args(["-c", starts, "sh"])
            .arg(&file)
            .arg(PROGRAM)
            .args(arguments(Duration::from_secs(300)))
            .args(["sh", "-c", runs])
            .arg(&file)
            .status()
            .unwrap();
        assert!(!status.success());
        let process = fs::read_to_string(&file).unwrap();
        let state = Path::new("/proc").join(process.trim()).join("stat");
        let begun = Instant::now();
        // Gone, or dead and not waited for by whoever inherited it.
        while fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(begun.elapsed() < Duration::from_secs(30), "it still runs");
            thread::sleep(Duration::from_millis(20));
        }
    }
}
