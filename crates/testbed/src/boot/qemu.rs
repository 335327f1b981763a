// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator as a child process that cannot outlive us.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::boot::memory_file;
use crate::error::Error;

/// A running emulator; killed when dropped.
pub struct Emulator {
    child: Child,
    messages: File,
}

impl Emulator {
    /// Starts `program`, which inherits `files` under their own descriptor numbers.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be executed.
    pub fn start(program: &Path, arguments: &[OsString], files: &[&File]) -> Result<Self, Error> {
        let cannot_start = |source| Error::File {
            doing: "starting",
            path: program.into(),
            source,
        };
        let messages = memory_file::create(c"unspin-qemu-messages")?;
        let kept: Vec<i32> = files.iter().map(|file| file.as_raw_fd()).collect();
        let parent = std::process::id();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(messages.try_clone().map_err(cannot_start)?);
        // SAFETY: between fork and exec only async-signal-safe calls are made: prctl, getppid, fcntl; no allocation.
        unsafe {
            command.pre_exec(move || {
                die_with(parent)?;
                kept.iter()
                    .try_for_each(|&descriptor| memory_file::keep_over_exec(descriptor))
            });
        }
        let child = command.spawn().map_err(cannot_start)?;
        Ok(Self { child, messages })
    }

    /// The exit status once it has ended; never waits.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(|source| Error::System {
            doing: "waiting for QEMU",
            source,
        })
    }

    /// What it wrote to its standard error, without the warnings about features TCG is forced to show.
    pub fn messages(&self) -> String {
        let text = String::from_utf8_lossy(&contents(&self.messages)).into_owned();
        let lines: Vec<_> = text
            .lines()
            .filter(|line| !line.contains("TCG doesn't support requested feature"))
            .collect();
        lines.join("\n")
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks the kernel to kill this process when the thread that started it ends, also if that has already happened.
fn die_with(parent: u32) -> std::io::Result<()> {
    // SAFETY: both calls take plain integers.
    let (set, now) = unsafe {
        (
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
            libc::getppid(),
        )
    };
    if set < 0 {
        return Err(std::io::Error::last_os_error());
    }
    if now as u32 != parent {
        return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

/// Everything in `file` so far, whoever writes it; what cannot be read is left out.
pub fn contents(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().map_or(0, |data| data.len() as usize)];
    let mut filled = 0;
    while let Ok(read @ 1..) = file.read_at(&mut bytes[filled..], filled as u64) {
        filled += read;
    }
    bytes.truncate(filled);
    bytes
}
