// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator as a child process that cannot outlive us.
//!
//! What it reads and writes are files in memory: nothing on a disk to fill it, to leave behind or to clean up.

use std::{
    ffi::{CStr, OsString},
    fs::File,
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::{fs::FileExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use crate::die_with::die_with_starter;
use crate::error::Error;

/// A running emulator; killed when dropped.
pub struct Emulator {
    child: Child,
    messages: File,
}

impl Emulator {
    /// Starts `program` with this environment and no other; it inherits `files` under their own descriptor numbers.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be executed.
    pub fn start(
        program: &Path,
        arguments: &[OsString],
        environment: &[(&str, PathBuf)],
        files: &[&File],
    ) -> Result<Self, Error> {
        let cannot_start = |source| Error::File {
            doing: "starting",
            path: program.into(),
            source,
        };
        let messages = create_memory_file(c"unspin-emulator-messages")?;
        let kept: Vec<i32> = files.iter().map(|file| file.as_raw_fd()).collect();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(messages.try_clone().map_err(cannot_start)?);
        die_with_starter(&mut command);
        // SAFETY: between fork and exec only async-signal-safe calls are made: fcntl; no allocation.
        unsafe {
            command.pre_exec(move || {
                kept.iter()
                    .try_for_each(|&descriptor| keep_over_exec(descriptor))
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
            doing: "waiting for the emulator",
            source,
        })
    }

    /// What it wrote to its standard error.
    pub fn messages(&self) -> String {
        String::from_utf8_lossy(&contents(&self.messages)).into_owned()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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

/// Makes an empty file in memory; `name` shows in `/proc/PID/maps` only.
///
/// # Errors
/// [`Error::System`] when the system has no memory or file descriptors left.
pub fn create_memory_file(name: &CStr) -> Result<File, Error> {
    // SAFETY: name is a terminated string; the call touches nothing else.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(Error::System {
            doing: "making a file in memory",
            source: std::io::Error::last_os_error(),
        });
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// The path by which a child that inherits `file` can open it.
pub fn inherited_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Lets the next `exec` of this process keep `file`. Async-signal-safe: may be called between fork and exec.
///
/// # Errors
/// What `fcntl` says.
pub fn keep_over_exec(descriptor: i32) -> std::io::Result<()> {
    // SAFETY: F_SETFD takes a plain integer and touches no memory.
    if unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
