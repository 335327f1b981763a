// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of user policies.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a user policy could not be compiled or run.
#[derive(Debug, thiserror::Error)]
pub enum UserPolicySourceError {
    /// The file's name is no valid name of a policy.
    #[error(
        "`{0}` is no name for a policy: letters a to z, digits and `_`, a letter first, 31 at most, and no policy's of unspin"
    )]
    Name(String),
    /// A file is missing, or cannot be read or written.
    #[error("{path}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file's path cannot be written in a C program.
    #[error("{0}: a path with quotes, backslashes or line breaks cannot be compiled")]
    Path(PathBuf),
    /// There is no compiler.
    #[error(
        "{what} needs {compiler}, and none of {tried} is there: {advice}; `unspin doctor` lists what is found",
        tried = tried.join(", ")
    )]
    NoCompiler {
        /// What it is needed for.
        what: &'static str,
        /// The kind of compiler.
        compiler: &'static str,
        /// The names that were tried.
        tried: Vec<String>,
        /// How to install it.
        advice: &'static str,
    },
    /// The compiler's errors.
    #[error("{path} does not compile:\n{said}", path = path.display())]
    Compiler {
        /// The policy's file.
        path: PathBuf,
        /// The compiler's output, with files named as the user named them.
        said: String,
    },
    /// The compiled policy cannot be loaded.
    #[error("{path} cannot be loaded: {said}", path = path.display())]
    Library {
        /// The policy's file.
        path: PathBuf,
        /// The system's reason.
        said: String,
    },
    /// Too many user policies are loaded.
    #[error("more than {0} user policies at a time")]
    TooMany(usize),
    /// The replay program ended early.
    #[error("taking decisions again with {0} ended in the middle")]
    Replay(PathBuf),
    /// Temporary files cannot be written, or a program cannot be run.
    #[error("compiling a policy")]
    Work(#[from] io::Error),
}

impl UserPolicySourceError {
    pub(crate) fn file(path: &Path, source: io::Error) -> UserPolicySourceError {
        UserPolicySourceError::File {
            path: path.to_owned(),
            source,
        }
    }
}
