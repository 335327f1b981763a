// SPDX-License-Identifier: MIT OR Apache-2.0
//! A rival that schedules: its program runs as a child, and the kernel says that this one, and no other, is attached.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use tempfile::TempDir;
use unspin_testbed::die_with_starter;

use super::{Rival, place::Place};
use crate::{Error, Session};

/// Where the kernel tells of sched_ext.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";
/// `disabled`, `enabling`, `enabled` or `disabling`.
const STATE: &str = "state";
/// The name of whoever is attached; not there while nobody is.
const NAME: &str = "root/ops";
/// How often a scheduler was attached since boot (kernel/sched/ext/ext.c, Linux 7.2, `scx_enable_seq`): a rival that restarts
/// itself counts twice.
const ATTACHMENTS: &str = "enable_seq";

/// How long a rival may take to be attached, and an earlier scheduler to be gone, by this host's clock.
const ATTACH_LIMIT: Duration = Duration::from_secs(120);
/// How long it may take to end after SIGINT, before SIGKILL.
const END_LIMIT: Duration = Duration::from_secs(30);
/// How long the kernel may take to have its own scheduler back once the program is gone.
const GONE_LIMIT: Duration = Duration::from_secs(10);
/// How long a program whose scheduler is gone may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);
/// Lines of its log in a message.
const LOG_LINES: usize = 12;
/// While it loads: beside VMs that fill the host the kernel's verifier has a share of a CPU otherwise, and takes many times as long.
const NICE_WHILE_LOADING: libc::c_int = -20;

/// A rival's program, which the kernel has attached; ended when dropped.
pub struct Attached {
    rival: Rival,
    child: Child,
    /// Where its log is, until it is dropped.
    folder: TempDir,
    sched_ext: PathBuf,
    /// [`ATTACHMENTS`] while it is attached.
    attachments: String,
}

impl Attached {
    /// Starts it and waits until it schedules.
    ///
    /// # Errors
    /// When it cannot be started, ends, or is not attached after two minutes, with the last lines of its log; an interrupt.
    pub fn start(place: &Place, session: &Session) -> Result<Attached, Error> {
        Attached::start_where(place, Path::new(SCHED_EXT), ATTACH_LIMIT, session)
    }

    /// The same where that folder is what the kernel tells of sched_ext, with that limit.
    ///
    /// # Errors
    /// As [`Attached::start`].
    pub fn start_where(
        place: &Place,
        sched_ext: &Path,
        limit: Duration,
        session: &Session,
    ) -> Result<Attached, Error> {
        let rival = place.rival;
        let said = |file| read(&sched_ext.join(file));
        if !sched_ext.join(STATE).exists() {
            return Err(anyhow!(
                "this kernel has no sched_ext ({} is missing), which {rival} needs: Linux 6.12 or later with CONFIG_SCHED_CLASS_EXT",
                sched_ext.display()
            )
            .into());
        }
        if !wait_for(session, limit, || Ok(said(STATE) == "disabled"))? {
            return Err(anyhow!(
                "another sched_ext scheduler, `{}`, runs on this host ({}): {rival} needs its place",
                said(NAME),
                said(STATE)
            )
            .into());
        }
        let folder = tempfile::tempdir()?;
        let log = File::create(folder.path().join("log"))?;
        let mut command = place.command();
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // An interrupt from the terminal is for this process, which then ends it in order.
            .process_group(0);
        die_with_starter(&mut command);
        let child = command
            .spawn()
            .with_context(|| format!("starting {rival} ({command:?})"))?;
        set_nice(child.id(), NICE_WHILE_LOADING);
        let mut attached = Attached {
            rival,
            child,
            folder,
            sched_ext: sched_ext.to_owned(),
            attachments: String::new(),
        };
        let schedules = wait_for(session, limit, || {
            attached.still_runs("before it was attached")?;
            Ok(said(STATE) == "enabled" && rival.is_named(&said(NAME)))
        })?;
        if !schedules {
            let what = format!("was not attached within {} s", limit.as_secs());
            return Err(attached.failed(&what));
        }
        attached.attachments = said(ATTACHMENTS);
        attached.own_nice()?;
        Ok(attached)
    }

    /// Whoever thinks that it schedules must not measure another scheduler.
    ///
    /// # Errors
    /// When its program has ended, or the kernel has taken its own scheduler back, or it was attached once more meanwhile.
    pub fn still_attached(&mut self) -> Result<(), Error> {
        self.still_runs("while it was measured")?;
        let (name, attachments) = (self.said(NAME), self.said(ATTACHMENTS));
        if self.rival.is_named(&name) && attachments == self.attachments {
            return Ok(());
        }
        // It says why once it has noticed.
        let until = Instant::now() + LAST_WORDS;
        while Instant::now() < until && self.child.try_wait()?.is_none() {
            thread::sleep(POLL);
        }
        let what = match name.as_str() {
            "" => "was sent away by the kernel while it was measured",
            _ => "was detached and attached again while it was measured",
        };
        Err(self.failed(what))
    }

    /// Ends it, and waits until the kernel's own scheduler is back.
    ///
    /// # Errors
    /// When the kernel's own scheduler does not come back.
    pub fn end(mut self) -> Result<(), Error> {
        self.stop()?;
        let until = Instant::now() + GONE_LIMIT;
        while self.said(STATE) != "disabled" {
            if Instant::now() > until {
                let what = format!(
                    "has ended, and the kernel's own scheduler is not back after {} s",
                    GONE_LIMIT.as_secs()
                );
                return Err(self.failed(&what));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// SIGINT, as from a terminal; then SIGKILL.
    fn stop(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        if let Ok(id) = libc::pid_t::try_from(self.child.id()) {
            // SAFETY: no pointers. The child has not been waited for, so the id is still its own.
            unsafe { libc::kill(id, libc::SIGINT) };
        }
        let until = Instant::now() + END_LIMIT;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        self.child.kill()?;
        self.child.wait()
    }

    fn still_runs(&mut self, when: &str) -> Result<(), Error> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.failed(&format!("ended {when} ({status})"))),
        }
    }

    /// The nice value that it was started with, in all of its threads.
    fn own_nice(&self) -> io::Result<()> {
        for entry in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let name = entry?.file_name();
            if let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) {
                set_nice(thread, 0);
            }
        }
        Ok(())
    }

    fn said(&self, file: &str) -> String {
        read(&self.sched_ext.join(file))
    }

    /// What happened to it, with the end of its log.
    fn failed(&self, what: &str) -> Error {
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        let said = last_lines(&String::from_utf8_lossy(&log));
        anyhow!("the rival {} {what}; its log ends:\n{said}", self.rival).into()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.stop();
    }
}

/// Whether it is so, within the limit.
///
/// # Errors
/// The look's, and an interrupt.
fn wait_for(
    session: &Session,
    limit: Duration,
    mut look: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let until = Instant::now() + limit;
    loop {
        if look()? {
            return Ok(true);
        }
        if Instant::now() > until {
            return Ok(false);
        }
        session.sleep(POLL)?;
    }
}

/// What a file of sysfs says, without the line's end; nothing where there is none.
fn read(file: &Path) -> String {
    fs::read_to_string(file)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Of a thread, where this process may; otherwise it only loads more slowly.
fn set_nice(thread: u32, nice: libc::c_int) {
    // SAFETY: takes plain integers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, nice) };
}

/// The last lines that are not empty, indented; says so where there are none.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(LOG_LINES);
    match lines.is_empty() {
        true => "  (it is empty)".to_owned(),
        false => format!("  {}", lines[first..].join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_ends_with_its_last_lines() {
        assert_eq!(last_lines("\n \n"), "  (it is empty)");
        assert_eq!(last_lines("one\n\ntwo\n"), "  one\n  two");
        let long: Vec<String> = (1..=20).map(|line| line.to_string()).collect();
        let said = last_lines(&long.join("\n"));
        assert!(said.starts_with("  9\n  10") && said.ends_with("\n  20"));
    }

    #[test]
    fn waiting_ends_by_itself_with_the_limit_or_with_an_interrupt() {
        let session = Session::quiet();
        let mut looks = 0;
        let third = wait_for(&session, Duration::from_secs(60), || {
            looks += 1;
            Ok(looks == 3)
        });
        assert!(third.expect("no error") && looks == 3);
        let never = wait_for(&session, Duration::ZERO, || Ok(false));
        assert!(!never.expect("no error"));
        session
            .interrupt
            .store(true, std::sync::atomic::Ordering::Relaxed);
        let ended = wait_for(&session, Duration::from_secs(60), || Ok(false));
        assert!(matches!(ended, Err(Error::Interrupted)));
    }
}
