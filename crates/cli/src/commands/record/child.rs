// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command that `unspin record` runs meanwhile.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;

use crate::terminal::failure::Failure;

/// How long a command may take to end after Ctrl-C, which the terminal gives it as well, until it is asked by SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command that runs.
pub struct Running {
    child: Child,
    asked_since: Option<Instant>,
    told: bool,
}

impl Running {
    /// Starts it. With `own_output`, standard output belongs to this program, and the command writes to standard error.
    ///
    /// # Errors
    /// When it cannot be started; says its name.
    pub fn start(command: &[OsString], own_output: bool) -> Result<Option<Running>, Failure> {
        let Some((name, arguments)) = command.split_first() else {
            return Ok(None);
        };
        let program = match name == OsStr::new("unspin") {
            true => std::env::current_exe()?.into_os_string(),
            false => name.clone(),
        };
        let mut command = Command::new(program);
        command.args(arguments);
        if own_output {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        let child = command
            .spawn()
            .with_context(|| format!("{}: cannot be started", name.to_string_lossy()))?;
        Ok(Some(Running {
            child,
            asked_since: None,
            told: false,
        }))
    }

    /// Its status, if it has ended.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// This program was asked to stop: the command gets some time, then SIGTERM.
    pub fn stop_soon(&mut self) {
        let since = *self.asked_since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE && !self.told {
            self.told = true;
            if let Ok(id) = libc::pid_t::try_from(self.child.id()) {
                // SAFETY: no pointers. The child has not been waited for, so the id is still its own.
                unsafe { libc::kill(id, libc::SIGTERM) };
            }
        }
    }
}

/// The status as a shell shows it: 128 + n for signal n.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> ExitCode {
        let command = ["sh", "-c", script].map(OsString::from);
        let started = Running::start(&command, true).expect("a shell");
        let mut running = started.expect("there is a command");
        loop {
            if let Some(status) = running.ended().expect("it is our child") {
                return exit_code(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_status_is_passed_on() {
        let same = |code: ExitCode, number: u8| {
            format!("{code:?}") == format!("{:?}", ExitCode::from(number))
        };
        assert!(same(run("exit 0"), 0));
        assert!(same(run("exit 7"), 7));
        assert!(same(run("kill -9 $$"), 128 + 9));
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        assert!(Running::start(&[], false).expect("nothing to do").is_none());
        let error = Running::start(&["/nonexistent/command".into()], false)
            .err()
            .expect("refused");
        let Failure::Failed(error) = error else {
            panic!("another failure")
        };
        let said = format!("{error:#}");
        assert!(
            said.starts_with("/nonexistent/command: cannot be started: "),
            "{said}"
        );
    }
}
