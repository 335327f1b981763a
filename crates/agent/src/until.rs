// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a host is steered or recorded: until an interrupt, a time, or the end of a command that runs meanwhile.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How often the end is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a command may take to end after an interrupt, which the terminal gives it as well, until it is asked by SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The command has ended.
    CommandEnded,
    /// The interrupt was set.
    Interrupted,
    /// The time is up.
    TimeIsUp,
}

/// What ends it. Nothing does before [`Until::start`] but the interrupt.
pub struct Until {
    interrupt: Arc<AtomicBool>,
    limit: Option<Duration>,
    began: Instant,
    child: Option<Child>,
    status: Option<ExitStatus>,
    beat: Option<Box<dyn FnMut() + Send>>,
}

impl Until {
    /// `interrupt` is set from anywhere, at any time; `limit`: for so long at most.
    pub fn new(interrupt: Arc<AtomicBool>, limit: Option<Duration>) -> Until {
        Until {
            interrupt,
            limit,
            began: Instant::now(),
            child: None,
            status: None,
            beat: None,
        }
    }

    /// The same, with what is called whenever somebody asks whether it is over: whoever waits for the end is alive.
    pub fn with_beat(self, beat: impl FnMut() + Send + 'static) -> Until {
        Until {
            beat: Some(Box::new(beat)),
            ..self
        }
    }

    /// Time counts from now on, and the command runs, if there is one.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&mut self, command: Option<Command>) -> io::Result<()> {
        self.child = command.map(|mut command| command.spawn()).transpose()?;
        self.began = Instant::now();
        Ok(())
    }

    /// Whether it is over, and why.
    ///
    /// # Errors
    /// When the system does not say how the command does.
    pub fn over(&mut self) -> io::Result<Option<Over>> {
        if let Some(beat) = &mut self.beat {
            beat();
        }
        if let Some(child) = &mut self.child {
            self.status = child.try_wait()?;
        }
        let time_is_up = self
            .limit
            .is_some_and(|limit| self.began.elapsed() >= limit);
        Ok(if self.status.is_some() {
            Some(Over::CommandEnded)
        } else if self.interrupt.load(Ordering::Relaxed) {
            Some(Over::Interrupted)
        } else {
            time_is_up.then_some(Over::TimeIsUp)
        })
    }

    /// The same after a moment's sleep, if it is not over.
    ///
    /// # Errors
    /// As [`Until::over`].
    pub fn poll(&mut self) -> io::Result<Option<Over>> {
        let over = self.over()?;
        if over.is_none() {
            self.pause();
        }
        Ok(over)
    }

    /// Sleeps until it should be asked again.
    pub fn pause(&self) {
        thread::sleep(POLL_INTERVAL);
    }

    /// Waits for the command, which may outlive the rest, and gives its status; `None`: there was none.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn finish(mut self) -> io::Result<Option<ExitStatus>> {
        if let (Some(child), None) = (&mut self.child, self.status) {
            self.status = Some(child.wait()?);
        }
        Ok(self.status)
    }

    /// As [`Until::finish`]; after an interrupt the command gets 5 s, then SIGTERM.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn finish_or_terminate(mut self) -> io::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else {
            return Ok(None);
        };
        let mut asked_since = None;
        let mut told = false;
        while self.status.is_none() {
            self.status = child.try_wait()?;
            if self.interrupt.load(Ordering::Relaxed) && self.status.is_none() {
                let since = *asked_since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE && !told {
                    told = true;
                    terminate(child);
                }
            }
            if self.status.is_none() {
                thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(self.status)
    }
}

fn terminate(child: &Child) {
    if let Ok(id) = libc::pid_t::try_from(child.id()) {
        // SAFETY: no pointers. The child has not been waited for, so the id is still its own.
        unsafe { libc::kill(id, libc::SIGTERM) };
    }
}

/// The status as a shell shows it: 128 + n for signal n.
pub fn shell_status(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(limit: Option<Duration>, script: Option<&str>) -> Until {
        let mut until = Until::new(Arc::default(), limit);
        let command = script.map(|script| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        });
        until.start(command).expect("a shell");
        until
    }

    fn run(script: &str) -> u8 {
        let mut until = until(None, Some(script));
        loop {
            if let Some(over) = until.poll().expect("it is our child") {
                assert_eq!(over, Over::CommandEnded);
                let status = until.finish().expect("it is our child");
                return shell_status(status.expect("there was a command"));
            }
        }
    }

    #[test]
    fn the_status_is_passed_on() {
        assert_eq!(run("exit 0"), 0);
        assert_eq!(run("exit 7"), 7);
        assert_eq!(run("kill -9 $$"), 128 + 9);
    }

    #[test]
    fn a_command_outlives_time_and_interrupt() {
        let mut late = until(Some(Duration::ZERO), Some("sleep 0.1; exit 3"));
        assert_eq!(late.over().expect("our child"), Some(Over::TimeIsUp));
        let status = late.finish_or_terminate().expect("our child");
        assert_eq!(status.map(shell_status), Some(3));
        let mut interrupted = until(None, Some("sleep 0.1; exit 4"));
        interrupted.interrupt.store(true, Ordering::Relaxed);
        let over = interrupted.over().expect("our child");
        assert_eq!(over, Some(Over::Interrupted));
        let status = interrupted.finish().expect("our child");
        assert_eq!(status.map(shell_status), Some(4));
        let none = until(Some(Duration::ZERO), None);
        assert_eq!(none.finish_or_terminate().expect("nobody to ask"), None);
    }

    #[test]
    fn whoever_asks_is_alive() {
        let beats = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let seen = Arc::clone(&beats);
        let beat = move || {
            seen.fetch_add(1, Ordering::Relaxed);
        };
        let mut until = Until::new(Arc::default(), None).with_beat(beat);
        assert_eq!(until.over().expect("nothing runs"), None);
        assert_eq!(until.poll().expect("nothing runs"), None);
        assert_eq!(beats.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_cannot_be_started_is_said() {
        let mut until = Until::new(Arc::default(), None);
        let command = Command::new("/nonexistent/command");
        assert!(until.start(Some(command)).is_err());
        assert_eq!(until.over().expect("nothing runs"), None);
    }
}
