// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may go wrong with a user policy.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a user policy could not be compiled or run.
#[derive(Debug, thiserror::Error)]
pub enum UserPolicySourceError {
    /// Its file's name does not say how its functions are called.
    #[error(
        "`{0}` is no name for a policy: letters a to z, digits and `_`, a letter first, 31 at most, and no policy's of unspin"
    )]
    Name(String),
    /// A file that is not there, or cannot be read or written.
    #[error("{path}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its path cannot stand in a C program.
    #[error("{0}: a path with quotes, backslashes or line breaks cannot be compiled")]
    Path(PathBuf),
    /// There is no compiler.
    #[error(
        "{what} needs {compiler}, and none of {tried} is there: {advice}; `unspin doctor` says what is found",
        tried = tried.join(", ")
    )]
    NoCompiler {
        /// What was to be done.
        what: &'static str,
        /// Which kind of compiler.
        compiler: &'static str,
        /// Under which names it was looked for.
        tried: Vec<String>,
        /// How to get it.
        advice: &'static str,
    },
    /// What the compiler said.
    #[error("{path} does not compile:\n{said}", path = path.display())]
    Compiler {
        /// The policy's file.
        path: PathBuf,
        /// The compiler's lines, with files named as the user did.
        said: String,
    },
    /// What the system said of the compiled policy.
    #[error("{path} cannot be loaded: {said}", path = path.display())]
    Library {
        /// The policy's file.
        path: PathBuf,
        /// Why not.
        said: String,
    },
    /// No room for one more.
    #[error("more than {0} user policies at a time")]
    TooMany(usize),
    /// The program that takes decisions again ended early.
    #[error("taking decisions again with {0} ended in the middle")]
    Replay(PathBuf),
    /// Files for a moment could not be written, or a program not be run.
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
