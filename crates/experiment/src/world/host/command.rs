// SPDX-License-Identifier: MIT OR Apache-2.0
//! Somebody's own command as what is measured: a sample is one run of it, from its start to its end.

use std::{
    ffi::OsString,
    fmt,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ExitStatus, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;

use crate::{Error, Session};

/// How often an interrupt is looked for meanwhile; the run's end is noted by a thread that waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Command(Vec<OsString>);

impl Command {
    /// `None` of no words.
    pub fn of(words: &[OsString]) -> Option<Command> {
        (!words.is_empty()).then(|| Command(words.to_vec()))
    }

    /// Its program's file name.
    pub fn name(&self) -> String {
        let program = Path::new(&self.0[0]);
        let name = program.file_name().unwrap_or(&self.0[0]);
        name.to_string_lossy().into_owned()
    }

    /// Runs it; how long it took. Its input is empty, its output is dropped, its errors are seen.
    ///
    /// # Errors
    /// When it cannot be started, ends with another status than 0, or the session is interrupted: then it is killed, with the processes
    /// that it has started and that are of its process group.
    pub fn run(&self, session: &Session) -> Result<Duration, Error> {
        let begin = Instant::now();
        let child = std::process::Command::new(&self.0[0])
            .args(&self.0[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("{self}"))?;
        let (status, end) = wait(child, session)?;
        if !status.success() {
            return Err(Error::Failed(anyhow::anyhow!("{self} ended: {status}")));
        }
        Ok(end - begin)
    }
}

/// As it would be typed, without quotes.
impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|word| word.to_string_lossy()).collect();
        write!(out, "{}", words.join(" "))
    }
}

/// What became of it, and when.
fn wait(mut child: Child, session: &Session) -> Result<(ExitStatus, Instant), Error> {
    let group = child.id() as libc::pid_t;
    let (ends, ended) = channel();
    let waiter = thread::spawn(move || ends.send((child.wait(), Instant::now())));
    let outcome = loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok((status, end)) => break Ok((status.context("waiting for it")?, end)),
            Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends before it ends"),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupted) = session.sleep(Duration::ZERO) {
                    // SAFETY: takes numbers only. Its own, unless it has ended in this moment: then they are nobody's so soon.
                    unsafe { libc::kill(-group, libc::SIGKILL) };
                    break Err(interrupted);
                }
            }
        }
    };
    // Its receiver may be gone by the time it sends: then nobody wants to know.
    let _ = waiter.join();
    outcome
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn run(line: &str, interrupt: bool) -> Result<Duration, String> {
        let words: Vec<OsString> = line.split('|').map(Into::into).collect();
        let session = Session::quiet();
        session.interrupt.store(interrupt, Ordering::Relaxed);
        let command = Command::of(&words).expect("words");
        command.run(&session).map_err(|error| error.to_string())
    }

    #[test]
    fn a_run_lasts_until_its_end() {
        let took = run("sleep|0.05", false).expect("it sleeps");
        assert!(took >= Duration::from_millis(50), "{took:?}");
        assert!(Command::of(&[]).is_none());
        let named = |word: &str| Command::of(&[word.into()]).map(|command| command.name());
        assert_eq!(named("/usr/bin/make").as_deref(), Some("make"));
        assert_eq!(named("..").as_deref(), Some(".."));
    }

    #[test]
    fn what_fails_is_named() {
        let failed = run("sh|-c|exit 3", false).expect_err("status 3");
        assert!(
            failed.contains("sh -c exit 3 ended: exit status: 3"),
            "{failed}"
        );
        let missing = run("/no/such/program|x", false).expect_err("missing");
        assert!(missing.contains("/no/such/program"), "{missing}");
    }

    #[test]
    fn an_interrupt_ends_it_with_its_children() {
        let begin = Instant::now();
        let said = run("sh|-c|sleep 60 & sleep 60", true).expect_err("interrupted");
        assert_eq!(said, "interrupted");
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
