// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong before the program runs.

use std::{io, path::PathBuf};

/// Why the program was not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such file in the folders of PATH, or at the path.
    #[error("{0}: no such program")]
    Missing(PathBuf),
    /// It cannot be read or is not executable.
    #[error("{0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// The dynamic linker does not run.
    #[error(
        "{0} is linked statically: no library can take the place of its locks (link it with libunspin instead, docs/libunspin.md)"
    )]
    Static(PathBuf),
    /// The dynamic linker ignores LD_PRELOAD.
    #[error(
        "{0} has the set-user-ID or set-group-ID bit: the dynamic linker preloads nothing into it"
    )]
    SetId(PathBuf),
    /// A program for another kind of machine.
    #[error("{0} is no 64-bit program of this machine: the library cannot be loaded into it")]
    Foreign(PathBuf),
    /// The library's file, or that of the report.
    #[error("cannot write {0}: {1}")]
    Unwritable(PathBuf, io::Error),
    /// LD_PRELOAD separates by these.
    #[error(
        "{0} contains a space or a colon, which LD_PRELOAD cannot name: set XDG_CACHE_HOME to another folder"
    )]
    Separator(PathBuf),
    /// fork or exec.
    #[error("cannot start {0}: {1}")]
    NotStarted(PathBuf, io::Error),
}
