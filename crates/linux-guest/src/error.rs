// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong with a Linux guest, each with what to do about it.

use std::path::PathBuf;
use std::time::Duration;

/// Why the guests did not do their work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The programs are not there.
    #[error("the programs of Linux guests are not set up: {path} is missing; run `make setup`", path = .path.display())]
    NotSetUp {
        /// What was looked for.
        path: PathBuf,
    },
    /// What `make setup` does not build is not there.
    #[error("the Linux guest with our locks is not built: {path} is missing; run `make linux-guest`", path = .path.display())]
    NotBuilt {
        /// What was looked for.
        path: PathBuf,
    },
    /// Nor are these.
    #[error("loads of Linux guests are not there: {path} is missing; run `make linux-loads`", path = .path.display())]
    NoLoads {
        /// What was looked for.
        path: PathBuf,
    },
    /// Nor is this.
    #[error("the module for unmodified Linux guests is not built: {path} is missing; run `make linux-module`", path = .path.display())]
    NoModule {
        /// What was looked for.
        path: PathBuf,
    },
    /// A list of files names one that cannot lie below the programs' folder.
    #[error("{list} names {file:?}, which is no path below its folder; run `make clean-cache` and `make setup`", list = .list.display())]
    BadList {
        /// The list.
        list: PathBuf,
        /// What it names.
        file: String,
    },
    /// A number is out of range.
    #[error("{what} cannot be {value}: {least} to {most} are allowed")]
    Range {
        /// What it counts.
        what: &'static str,
        /// As given.
        value: u64,
        /// Least allowed.
        least: u64,
        /// Most allowed.
        most: u64,
    },
    /// A file could not be read, written or started.
    #[error("{doing} {path}: {source}", path = .path.display())]
    File {
        /// As in "reading".
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no KVM to run it on.
    #[error(
        "/dev/kvm cannot be used: {0}; `unspin testbed run -- unspin vm linux ...` runs it in the testbed"
    )]
    NoKvm(std::io::Error),
    /// A thread or a socket could not be had.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// QEMU ended while the guest was still wanted.
    #[error("{vm} ended while {doing}: {status}\n{messages}", messages = .messages.trim_end())]
    Ended {
        /// Which VM.
        vm: String,
        /// What was going on.
        doing: &'static str,
        /// QEMU's exit status.
        status: String,
        /// QEMU's own last words and the end of the guest's console.
        messages: String,
    },
    /// A guest took too long.
    #[error("{vm} was not done {doing} within {limit:?}; the end of its console:\n{console}", console = .console.trim_end())]
    TooLong {
        /// Which VM.
        vm: String,
        /// What was going on.
        doing: &'static str,
        /// The limit.
        limit: Duration,
        /// The end of the guest's console.
        console: String,
    },
    /// The guest said something that it cannot have meant.
    #[error("{vm} said {line:?}: {why}")]
    Protocol {
        /// Which VM.
        vm: String,
        /// The line, cut short.
        line: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The load failed in the guest.
    #[error("the load {load} failed in {vm}: {message}")]
    Load {
        /// Which VM.
        vm: String,
        /// Which load.
        load: &'static str,
        /// What the guest says.
        message: String,
    },
    /// The guest's kernel has other features than asked for.
    #[error("{vm} has other features than {wanted}: {difference}")]
    Features {
        /// Which VM.
        vm: String,
        /// The cell asked for.
        wanted: String,
        /// The first difference.
        difference: String,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// For `map_err`: `doing` as in "reading".
    pub(crate) fn file(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl Fn(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File {
            doing,
            path: path.clone(),
            source,
        }
    }

    /// For `map_err`.
    pub(crate) fn system(doing: &'static str) -> impl Fn(std::io::Error) -> Error {
        move |source| Error::System { doing, source }
    }
}
