// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot followed from the host: reads the channel, passes output on, notices hangs and panics.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::boot::emulator::{Emulator, contents};
use crate::boot::returned::Returned;
use crate::boot::{bochs, qemu};
use crate::channel::{Frame, Source, Stream};
use crate::error::{Error, Failure};
use crate::options::{Options, Vendor};

/// How often the channel is looked at: a hundredth of a second is live enough and costs no measurable host time.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long a machine may take to switch itself off after it sent everything.
const POWER_OFF_LIMIT: Duration = Duration::from_secs(10);

/// What is known once the command has ended.
pub struct Finished {
    pub status: u32,
    pub boot_ns: u64,
    pub command_start_ns: u64,
    pub boot_wall: Duration,
    pub wall: Duration,
    pub files: Vec<PathBuf>,
}

/// A boot under way.
pub struct Attempt<'a> {
    options: &'a Options,
    emulator: Emulator,
    reader: Box<dyn Source>,
    console: &'a File,
    stdout: &'a mut dyn Write,
    stderr: &'a mut dyn Write,
    returned: Option<Returned>,
    started: Instant,
    boot: Option<(u64, Duration)>,
    command_start_ns: u64,
    exit: Option<(u32, Instant)>,
    last_beat: (u64, Instant),
    /// Standard output has begun: a second attempt would repeat it.
    pub output_begun: bool,
}

impl<'a> Attempt<'a> {
    /// Follows `emulator`, which was started just now.
    pub fn new(
        options: &'a Options,
        emulator: Emulator,
        reader: Box<dyn Source>,
        console: &'a File,
        stdout: &'a mut dyn Write,
        stderr: &'a mut dyn Write,
    ) -> Self {
        let started = Instant::now();
        Self {
            options,
            emulator,
            reader,
            console,
            stdout,
            stderr,
            returned: options.bring_back.clone().map(Returned::new),
            started,
            boot: None,
            command_start_ns: 0,
            exit: None,
            last_beat: (0, started),
            output_begun: false,
        }
    }

    /// Until the machine is off, hangs or failed.
    ///
    /// # Errors
    /// Whatever a second attempt would not mend: see [`Error`].
    pub fn follow(&mut self) -> Result<Result<Finished, Failure>, Error> {
        loop {
            let ended = self.emulator.ended()?; // Before the channel, so that nothing written before the end is missed.
            self.drain()?;
            if let Some(status) = ended {
                return self.conclude(status);
            }
            if self
                .exit
                .is_some_and(|(_, at)| at.elapsed() > POWER_OFF_LIMIT)
            {
                note(
                    self.stderr,
                    "the command ended but the machine did not switch itself off; ended it",
                )?;
                return Ok(Ok(self.finished()));
            }
            if let Some(failure) = self.overdue()? {
                return Ok(Err(failure));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn drain(&mut self) -> Result<(), Error> {
        let mut any = false;
        while let Some(frame) = self.reader.next_frame()? {
            self.take(&frame)?;
            any = true;
        }
        if any {
            self.stdout
                .flush()
                .and_then(|()| self.stderr.flush())
                .map_err(Error::Output)?;
        }
        Ok(())
    }

    fn take(&mut self, frame: &Frame) -> Result<(), Error> {
        let bytes = frame.bytes.as_slice();
        match frame.stream {
            Stream::Stdout => {
                self.output_begun = true;
                self.stdout.write_all(bytes).map_err(Error::Output)?;
            }
            Stream::Stderr => self.stderr.write_all(bytes).map_err(Error::Output)?,
            Stream::Note => note(self.stderr, &String::from_utf8_lossy(bytes))?,
            Stream::InitStarted => {
                self.boot = Some((number(bytes)?, self.started.elapsed()));
                self.last_beat.1 = Instant::now();
            }
            Stream::CommandStarted => self.command_start_ns = number(bytes)?,
            Stream::FileBegin => self.returned()?.begin(bytes)?,
            Stream::FileData => self.returned()?.data(bytes)?,
            Stream::FileEnd => self.returned()?.end()?,
            Stream::Exit => self.exit = Some((number(bytes)? as u32, Instant::now())),
            Stream::InitFailed => {
                return Err(Error::Init(String::from_utf8_lossy(bytes).into_owned()));
            }
        }
        Ok(())
    }

    fn returned(&mut self) -> Result<&mut Returned, Error> {
        self.returned
            .as_mut()
            .ok_or_else(|| Error::Init("it sent back a file that nobody asked for".into()))
    }

    fn finished(&mut self) -> Finished {
        let (boot_ns, boot_wall) = self.boot.unwrap_or_default();
        Finished {
            status: self.exit.map_or(0, |(status, _)| status),
            boot_ns,
            command_start_ns: self.command_start_ns,
            boot_wall,
            wall: self.started.elapsed(),
            files: self
                .returned
                .as_mut()
                .map(|returned| std::mem::take(&mut returned.files))
                .unwrap_or_default(),
        }
    }

    fn conclude(&mut self, status: ExitStatus) -> Result<Result<Finished, Failure>, Error> {
        if self.exit.is_some() {
            return Ok(Ok(self.finished()));
        }
        let console = contents(self.console);
        if self.boot.is_none() && !status.success() && console.is_empty() {
            return Err(Error::Emulator {
                name: self.options.vendor.emulator(),
                command: self.options.vendor.set_up_by(),
                status: status.to_string(),
                message: self.last_words(),
            });
        }
        let panic = panic_message(&String::from_utf8_lossy(&console));
        // Bochs has no other status for a machine that switched itself off.
        let expected = self.options.vendor == Vendor::Intel && !panic.is_empty();
        if !status.success() && !expected {
            let name = self.options.vendor.emulator();
            let said = format!("{name}: {status} {}", self.last_words());
            return Ok(Err(Failure::Panicked(said)));
        }
        Ok(Err(Failure::Panicked(panic)))
    }

    fn last_words(&self) -> String {
        let messages = self.emulator.messages();
        match self.options.vendor {
            Vendor::Amd => qemu::last_words(&messages),
            Vendor::Intel => bochs::last_words(&messages),
        }
    }

    fn overdue(&mut self) -> Result<Option<Failure>, Error> {
        let (elapsed, options) = (self.started.elapsed(), self.options);
        if self.exit.is_some() {
            return Ok(None);
        }
        if self.boot.is_none() {
            return Ok(
                (elapsed > options.boot_limit()).then(|| Failure::BootHung(options.boot_limit()))
            );
        }
        if elapsed > options.time_limit {
            return Ok(Some(Failure::TimeLimit(options.time_limit)));
        }
        let beat = self.reader.heartbeat()?;
        if beat != self.last_beat.0 {
            self.last_beat = (beat, Instant::now());
        }
        let silent = self.last_beat.1.elapsed() > options.stall_limit();
        Ok(silent.then_some(Failure::Stalled(options.stall_limit())))
    }
}

fn number(bytes: &[u8]) -> Result<u64, Error> {
    let bytes = bytes
        .try_into()
        .map_err(|_| Error::Init(format!("it sent {} bytes for a number", bytes.len())))?;
    Ok(u64::from_le_bytes(bytes))
}

/// What the kernel said when it panicked: the first such line of its console, or nothing.
fn panic_message(console: &str) -> String {
    let line = console
        .lines()
        .find_map(|line| line.split_once("Kernel panic - not syncing: "));
    line.map(|(_, message)| message.trim().to_string())
        .unwrap_or_default()
}

/// One line of the testbed's own on standard error.
pub(crate) fn note(stderr: &mut dyn Write, text: &str) -> Result<(), Error> {
    writeln!(stderr, "unspin testbed: {text}")
        .and_then(|()| stderr.flush())
        .map_err(Error::Output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_is_found_in_the_console() {
        let console = "[ 1.0] fine\r\n[ 2.0] Kernel panic - not syncing: corrupted stack end\r\n[ 2.1] CPU: 1\r\n";
        assert_eq!(panic_message(console), "corrupted stack end");
        assert_eq!(panic_message("nothing"), "");
    }

    #[test]
    fn a_number_has_eight_bytes() {
        assert_eq!(number(&7_u64.to_le_bytes()).expect("eight bytes"), 7);
        assert!(number(b"1234567").is_err());
    }
}
