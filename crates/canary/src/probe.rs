// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's own measure of a host: a command that prints a number, again and again.

use std::{
    fs::File,
    io::{self, Read, Seek},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Between the end of a run and the beginning of the next.
const PAUSE: Duration = Duration::from_millis(250);
/// How soon the end of a run is seen.
const LOOKED_EVERY: Duration = Duration::from_millis(10);
/// So much of what it prints is looked at, bytes: a number, or the beginning of a complaint.
const PRINTED_MAX: u64 = 4 << 10;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeCommand {
    /// For `sh -c`. It prints one number, of which more is better, and ends with status 0.
    pub command: String,
    /// A run that takes longer is killed, and has failed.
    pub timeout: Duration,
}

/// A run of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProbeRun {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// What it printed, or why that is no result.
    pub(crate) value: Result<f64, String>,
}

/// Runs it in a thread of its own, until this is dropped.
pub(crate) struct Prober {
    stop: Option<Sender<()>>,
    runs: Receiver<ProbeRun>,
    thread: Option<JoinHandle<()>>,
}

impl Prober {
    /// Begins.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start(probe: ProbeCommand) -> io::Result<Prober> {
        let (stop, stopped) = mpsc::channel();
        let (send, runs) = mpsc::channel();
        let named = thread::Builder::new().name("unspin-probe".to_owned());
        let thread = named.spawn(move || {
            loop {
                run_once(&probe, &send, &stopped);
                if !goes_on(&stopped, PAUSE) {
                    return;
                }
            }
        })?;
        Ok(Prober {
            stop: Some(stop),
            runs,
            thread: Some(thread),
        })
    }

    /// Runs that have ended since the last call.
    pub(crate) fn take(&self) -> Vec<ProbeRun> {
        self.runs.try_iter().collect()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

/// Waits for so long; false: nobody wants to know any more.
fn goes_on(stopped: &Receiver<()>, time: Duration) -> bool {
    matches!(stopped.recv_timeout(time), Err(RecvTimeoutError::Timeout))
}

/// One run; nothing is told of one that is broken off because nobody wants to know any more.
fn run_once(probe: &ProbeCommand, send: &Sender<ProbeRun>, stopped: &Receiver<()>) {
    let began = Instant::now();
    let tell = |value| {
        let ended = Instant::now();
        // Whoever started it may be gone.
        let _ = send.send(ProbeRun {
            began,
            ended,
            value,
        });
    };
    let (mut child, mut printed) = match start(&probe.command) {
        Ok(started) => started,
        Err(error) => return tell(Err(format!("it cannot be started: {error}"))),
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                let text = text_of(&mut printed);
                let value = match status.success() {
                    true => number(&text),
                    false => Err(format!("it ended with {status}{}", quoted(&text))),
                };
                return tell(value);
            }
            Err(error) => return tell(Err(format!("nobody knows how it does: {error}"))),
            Ok(None) if began.elapsed() >= probe.timeout => {
                // Told first: one that the kernel does not let be killed is waited for, for as long as that takes.
                tell(Err(format!(
                    "it did not end within {:.1} s",
                    probe.timeout.as_secs_f64()
                )));
                return end(&mut child);
            }
            Ok(None) if !goes_on(stopped, LOOKED_EVERY) => return end(&mut child),
            Ok(None) => {}
        }
    }
}

/// In a process group of its own, which can be killed with all that it starts; what it prints goes to a file, so that nobody waits
/// for whoever keeps a pipe open.
fn start(command: &str) -> io::Result<(Child, File)> {
    let printed = tempfile::tempfile()?;
    let child = Command::new("sh")
        .args(["-c", command])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(printed.try_clone()?)
        .spawn()?;
    Ok((child, printed))
}

fn end(child: &mut Child) {
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: no pointers. The child leads that group and has not been waited for, so the number is still its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    // It is dead, or the kernel says that there is none.
    let _ = child.wait();
}

fn text_of(printed: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = printed
        .rewind()
        .and_then(|()| printed.take(PRINTED_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        Err(error) => format!("(what it printed cannot be read: {error})"),
    }
}

/// The number that it printed.
fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!(
            "it is to print one number, 0 or more, and printed{}",
            match text {
                "" => " nothing".to_owned(),
                text => quoted(text),
            }
        )),
    }
}

/// The first line, cut.
fn quoted(text: &str) -> String {
    match text.lines().next() {
        None => String::new(),
        Some(line) => format!(": {}", line.chars().take(120).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(command: &str, timeout: Duration) -> ProbeRun {
        let prober = Prober::start(ProbeCommand {
            command: command.to_owned(),
            timeout,
        });
        let prober = prober.expect("a thread");
        prober
            .runs
            .recv_timeout(Duration::from_secs(20))
            .expect("a run ends")
    }

    fn value(command: &str) -> Result<f64, String> {
        first(command, Duration::from_secs(10)).value
    }

    #[test]
    fn a_number_is_read_and_nothing_else_is_one() {
        assert_eq!(value("echo 12.5"), Ok(12.5));
        assert_eq!(value("printf '\n 0 \n'"), Ok(0.0));
        for (command, says) in [
            ("true", "printed nothing"),
            ("echo two; echo 2", "printed: two"),
            ("echo 1 2", "printed: 1 2"),
            ("echo -1", "0 or more"),
            ("echo inf", "printed: inf"),
            ("echo 5; exit 3", "exit status: 3: 5"),
            ("kill -9 $$", "signal: 9"),
        ] {
            let error = value(command).expect_err(command);
            assert!(error.contains(says), "{command}: {error}");
        }
    }

    #[test]
    fn one_that_hangs_is_killed_with_what_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("late");
        let command = format!("(sleep 1; touch {}) & sleep 60", file.display());
        let began = Instant::now();
        let run = first(&command, Duration::from_millis(200));
        let says = run.value.expect_err("it hangs");
        assert!(says.contains("did not end within 0.2 s"), "{says}");
        assert!(began.elapsed() < Duration::from_secs(10));
        assert!(run.ended - run.began >= Duration::from_millis(200));
        thread::sleep(Duration::from_millis(1_500));
        assert!(!file.exists(), "what it started goes on");
    }

    #[test]
    fn a_child_that_keeps_its_output_open_is_not_waited_for() {
        let began = Instant::now();
        assert_eq!(value("sleep 5 & echo 7"), Ok(7.0));
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn whoever_is_not_asked_any_more_ends_at_once() {
        let prober = Prober::start(ProbeCommand {
            command: "sleep 60".to_owned(),
            timeout: Duration::from_secs(60),
        });
        let prober = prober.expect("a thread");
        thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        drop(prober);
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
