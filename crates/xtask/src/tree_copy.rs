// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of the tree below `target/`, to be changed and built there: a run that is killed leaves the tree itself as it was.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::ensure;

use crate::repository;

/// A copy of the tree as it is now, uncommitted work included. It keeps its place, and its build, so that a second run compiles
/// little. One process at a time has it.
pub struct TreeCopy {
    /// The folder of all this, below `target/`.
    pub work: PathBuf,
    pub tree: PathBuf,
    target: PathBuf,
    // Released when dropped.
    _lock: File,
}

impl TreeCopy {
    /// Makes it anew in that folder of the tree; files have the dates that they have in the tree.
    ///
    /// # Errors
    /// Another process has it; it cannot be written.
    pub fn make(root: &Path, place: &str) -> anyhow::Result<TreeCopy> {
        let work = root.join(place);
        fs::create_dir_all(&work)?;
        let lock = File::create(work.join("lock"))?;
        // SAFETY: the descriptor is open while `lock` lives.
        let locked = unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        ensure!(
            locked == 0,
            "another run uses {}; wait for it",
            work.display()
        );
        let tree = work.join("tree");
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        for file in repository::files(root)? {
            let to = tree.join(&file);
            fs::create_dir_all(to.parent().unwrap_or(&tree))?;
            fs::copy(root.join(&file), &to)?;
            let date = fs::metadata(root.join(&file))?.modified()?;
            File::options().append(true).open(&to)?.set_modified(date)?;
        }
        Ok(TreeCopy {
            target: work.join("target"),
            work,
            tree,
            _lock: lock,
        })
    }

    /// A program that runs in the copy, whose cargo builds into a folder of its own.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_TERM_COLOR", "never")
            // The copy is no repository, and the one around it is not meant.
            .env("GIT_CEILING_DIRECTORIES", &self.work)
            .stdin(Stdio::null());
        command
    }
}

/// The cargo that runs this, or the one on PATH.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or("cargo".into())
}
