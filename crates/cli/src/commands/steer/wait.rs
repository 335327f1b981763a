// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long `unspin steer` lasts: until Ctrl-C, a time, or the end of a command; and where it prints.

use std::{
    ffi::OsString,
    process::{Child, Command, ExitCode, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use unspin_report::Document;

use crate::{
    commands::steer::args::SteerArguments,
    terminal::{failure::Failure, interrupt, output},
};

/// How often the caller is asked to look.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What ends it.
pub struct Wait {
    interrupted: Arc<AtomicBool>,
    limit: Option<Duration>,
    began: Instant,
    child: Option<Child>,
    status: Option<ExitStatus>,
}

impl Wait {
    /// From now on Ctrl-C is heard; nothing else has begun yet.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn new(arguments: &SteerArguments) -> Result<Wait, Failure> {
        Ok(Wait {
            interrupted: interrupt::flag()?,
            limit: arguments.duration,
            began: Instant::now(),
            child: None,
            status: None,
        })
    }

    /// Time counts from now on, and the command runs, if there is one.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&mut self, command: &[OsString]) -> Result<(), Failure> {
        if let Some((program, words)) = command.split_first() {
            let child = Command::new(program).args(words).spawn();
            self.child =
                Some(child.with_context(|| format!("starting {}", program.to_string_lossy()))?);
        }
        self.began = Instant::now();
        Ok(())
    }

    /// Sleeps for a moment; false when it is over.
    ///
    /// # Errors
    /// When the system does not say how the command does.
    pub fn continues(&mut self) -> Result<bool, Failure> {
        if let Some(child) = &mut self.child {
            self.status = child.try_wait()?;
        }
        let over = self
            .limit
            .is_some_and(|limit| self.began.elapsed() >= limit);
        if self.status.is_some() || over || self.interrupted.load(Ordering::Relaxed) {
            return Ok(false);
        }
        std::thread::sleep(LOOK_EVERY);
        Ok(true)
    }

    /// Waits for the command, which may outlive the time, and gives its exit status.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn finish(mut self) -> Result<ExitCode, Failure> {
        if let (Some(child), None) = (&mut self.child, self.status) {
            self.status = Some(child.wait()?);
        }
        let code = self.status.map(|status| status.code().unwrap_or(1) as u8);
        Ok(ExitCode::from(code.unwrap_or(0)))
    }
}

/// Prints the document: on standard output, or on standard error beside a command, whose output stands on the other.
///
/// # Errors
/// When it cannot be written.
pub fn print(document: &Document, arguments: &SteerArguments) -> Result<(), Failure> {
    if arguments.command.is_empty() {
        return Ok(output::print(document, arguments.output)?);
    }
    let mut out = std::io::stderr().lock();
    match arguments.output.json {
        true => document.write_json(&mut out)?,
        false => document.write_text(&mut out)?,
    }
    Ok(())
}
