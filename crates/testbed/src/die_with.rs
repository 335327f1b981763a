// SPDX-License-Identifier: MIT OR Apache-2.0
//! Children that do not outlive whoever started them.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel kill (SIGKILL) what this command starts when the thread that starts it ends, also if that has already
/// happened: then it is not executed at all. Threads, not processes: prctl(2), PR_SET_PDEATHSIG.
pub fn die_with_starter(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made: prctl and getppid; no allocation.
    unsafe { command.pre_exec(move || die_with(parent)) };
}

fn die_with(parent: u32) -> std::io::Result<()> {
    // SAFETY: both calls take plain integers.
    let (set, now) = unsafe {
        (
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
            libc::getppid(),
        )
    };
    match set {
        ..0 => Err(std::io::Error::last_os_error()),
        _ if now as u32 != parent => Err(std::io::Error::from_raw_os_error(libc::ESRCH)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let (started, children) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let starter = std::thread::spawn(move || {
            let mut command = Command::new("sleep");
            command.arg("600");
            die_with_starter(&mut command);
            started
                .send(command.spawn().expect("sleep is there"))
                .expect("asked for");
            let _ = ended.recv();
        });
        let mut child = children.recv().expect("it starts");
        std::thread::sleep(Duration::from_millis(50));
        assert!(
            child.try_wait().expect("it is ours").is_none(),
            "its starter lives"
        );
        drop(end);
        starter.join().expect("it ends");
        let status = child.wait().expect("it is ours");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_child_of_somebody_else_is_not_started() {
        let error = die_with(std::process::id()).expect_err("we are not our own parent");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        // SAFETY: takes plain integers; undoes what was set.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
    }
}
