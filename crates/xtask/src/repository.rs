// SPDX-License-Identifier: MIT OR Apache-2.0
//! The repository that this binary was built from.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

/// Its top folder.
///
/// # Errors
/// When it has been moved since the build.
pub fn root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize()
        .with_context(|| format!("{} has gone", root.display()))
}

/// Files that git tracks, and new ones that it does not ignore; relative to the top folder, by name. Those that were removed
/// but not yet committed are left out.
///
/// # Errors
/// When git fails.
pub fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let arguments = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let mut files: Vec<PathBuf> = git(root, &arguments)?
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|name| root.join(name).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The commit, with "-dirty" where files differ from it, but for those: results of what ran at the commit.
///
/// # Errors
/// When git fails.
pub fn commit_but_for(root: &Path, files: &[&str]) -> anyhow::Result<String> {
    let commit = git(root, &["describe", "--always", "--exclude=*"])?;
    let others: Vec<String> = files.iter().map(|file| format!(":!{file}")).collect();
    let mut arguments = vec!["status", "--porcelain", "--", "."];
    arguments.extend(others.iter().map(String::as_str));
    let changed = git(root, &arguments)?;
    let dirty = if changed.trim().is_empty() {
        ""
    } else {
        "-dirty"
    };
    Ok(format!("{}{dirty}", commit.trim()))
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .output()
        .context("git does not run")?;
    ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
