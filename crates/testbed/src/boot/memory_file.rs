// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files in memory that are handed to QEMU: nothing on a disk to fill it, to leave behind or to clean up.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;

use crate::error::Error;

/// Makes an empty file in memory; `name` shows in `/proc/PID/maps` only.
///
/// # Errors
/// [`Error::System`] when the system has no memory or file descriptors left.
pub fn create(name: &CStr) -> Result<File, Error> {
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
