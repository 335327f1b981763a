// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong with the testbed, each with what to do about it.

use std::path::PathBuf;
use std::time::Duration;

use crate::channel::ChannelError;

/// Why the testbed did not run the command to its end. A command that ran and failed is no error: see `Outcome::status`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that set-up puts into the cache is not there.
    #[error("the testbed is not set up: {what} is missing ({path}); run `{command}`", path = .path.display())]
    NotSetUp {
        /// What is missing.
        what: String,
        /// Where it was looked for.
        path: PathBuf,
        /// What puts it there.
        command: &'static str,
    },
    /// The kernel in the cache cannot be used.
    #[error(
        "the testbed's kernel is too old: {found}, at least {minimum} is needed; run `make setup`"
    )]
    KernelTooOld {
        /// Version found.
        found: String,
        /// Oldest version that works.
        minimum: String,
    },
    /// Neither `UNSPIN_CACHE` nor `XDG_CACHE_HOME` nor `HOME` is set.
    #[error("no cache folder: set UNSPIN_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
    /// An option is outside its range.
    #[error("{0}")]
    Option(String),
    /// The binary that is to be PID 1 needs a dynamic loader, which the testbed does not have.
    #[error(
        "{path} is not static, and the testbed holds nothing but this file; build it with \
         `-C target-feature=+crt-static` (the repository's .cargo/config.toml does)",
        path = .0.display()
    )]
    NotStatic(PathBuf),
    /// A file could not be read or written.
    #[error("{doing} {path}: {source}", path = .path.display())]
    File {
        /// "reading", "writing", ...
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A system call failed that has no file to name.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// Standard output or standard error of this process cannot be written.
    #[error("passing on the command's output: {0}")]
    Output(#[source] std::io::Error),
    /// The output area is full or corrupt.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// PID 1 in the testbed could not do its work.
    #[error("in the testbed: {0}")]
    Init(String),
    /// The emulator refused to start.
    #[error(
        "{name} ended before the kernel started ({status}): {message}\nif it misses something, run `{command}`"
    )]
    Emulator {
        /// QEMU or Bochs.
        name: &'static str,
        /// What sets it up.
        command: &'static str,
        /// Exit status in words.
        status: String,
        /// What it wrote to its standard error.
        message: String,
    },
    /// The testbed hung or panicked, and trying again was not possible or failed as well.
    #[error("{reason}, in attempt {attempt} of {attempts}{again}", again = if *.output_begun {
        "; not tried again because output had already been passed on"
    } else {
        ""
    })]
    Failed {
        /// What happened.
        reason: Failure,
        /// The attempt that failed last, from 1.
        attempt: u32,
        /// As many as there may be.
        attempts: u32,
        /// Standard output had begun, so that a second attempt would have repeated it.
        output_begun: bool,
    },
}

/// Why one boot did not end with an exit status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// PID 1 did not report in time.
    #[error("the testbed's kernel did not reach its init within {0:.0?}")]
    BootHung(Duration),
    /// PID 1 stopped beating.
    #[error("the testbed stopped responding for {0:.0?}")]
    Stalled(Duration),
    /// The command took longer than allowed.
    #[error("the command did not end within its limit of {0:.0?} (--time-limit)")]
    TimeLimit(Duration),
    /// The machine switched itself off without an exit status.
    #[error("the testbed's kernel panicked or reset{}", if .0.is_empty() { String::new() } else { format!(" ({})", .0) })]
    Panicked(String),
}

impl Failure {
    /// One word for the record of boots.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::BootHung(_) => "boot-hung",
            Self::Stalled(_) => "stalled",
            Self::TimeLimit(_) => "time-limit",
            Self::Panicked(_) => "panicked",
        }
    }
}
