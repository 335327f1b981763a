// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a recording cannot be written or read.

use std::{
    io,
    path::{Path, PathBuf},
};

use parquet::errors::ParquetError;

/// What went wrong, with the file or folder it went wrong with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A recording never mixes with other files, nor with an earlier one.
    #[error(
        "{}: the folder of a new recording must be empty, and `{found}` is in it; name another folder",
        folder.display()
    )]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// One of the files in it.
        found: String,
    },
    /// Two would take away each other's segments.
    #[error("{}: another flight recorder writes to this folder", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// Neither a description nor a segment.
    #[error(
        "{}: no recording: there is neither a recording.json nor an events-NNNNNN.parquet",
        folder.display()
    )]
    NotARecording {
        /// The folder.
        folder: PathBuf,
    },
    /// Damage leaves no event of it.
    #[error("{}: no event of it can be read: {}", folder.display(), problems.join("; "))]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        problems: Vec<String>,
    },
    /// The system refused.
    #[error("{}: {doing}: {cause}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's answer: in the text, so it is no `source` that would be printed once more.
        cause: io::Error,
    },
    /// Written by a version that this one does not know.
    #[error("{}: has {what} version {found}; this program reads version {reads}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Of what.
        what: &'static str,
        /// Its version.
        found: String,
        /// Ours.
        reads: u32,
    },
    /// A file that is not what it should be.
    #[error("{}: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An error came earlier; what was written before it is kept.
    #[error("{}: nothing more is written after an error", folder.display())]
    AfterError {
        /// The folder.
        folder: PathBuf,
    },
}

impl Error {
    /// Whether there was no room: a full disk, a quota, or a limit on file sizes.
    pub fn is_disk_full(&self) -> bool {
        let Error::Io { cause, .. } = self else {
            return false;
        };
        matches!(
            cause.raw_os_error(),
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)
        )
    }

    /// Whether room on the disk is missing that others, or older segments, take: less of them would help.
    pub(crate) fn is_for_want_of_room(&self) -> bool {
        let Error::Io { cause, .. } = self else {
            return false;
        };
        matches!(cause.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
    }

    /// Whether the file is not there.
    pub(crate) fn is_not_there(&self) -> bool {
        matches!(self, Error::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
    }

    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |cause| Error::Io {
            path: path.to_owned(),
            doing,
            cause,
        }
    }

    pub(crate) fn broken(path: &Path, why: impl ToString) -> Error {
        Error::Broken {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }

    /// An error of the Parquet library while writing: nearly always the system's, found inside.
    pub(crate) fn writing(path: &Path) -> impl FnOnce(ParquetError) -> Error {
        move |error| match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(cause) => Error::Io {
                    path: path.to_owned(),
                    doing: "writing",
                    cause: *cause,
                },
                Err(other) => Error::broken(path, other),
            },
            other => Error::broken(path, other),
        }
    }
}
