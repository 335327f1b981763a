// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask house`: the rooms stay rooms. Folders and sources keep within their size, no file name says again what its
//! folder says, modules of different concepts do not use each other in a circle, headers neither, C rooms include only
//! those below them, and each room has a README of one page.

mod files;
mod graph;
mod headers;
mod modules;
mod readmes;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

/// The text of each source, by its path from the top folder.
pub type Texts = BTreeMap<PathBuf, String>;

/// Checks every source that git tracks, and new ones; prints what breaks a rule, a line or a paragraph each.
///
/// # Errors
/// When a rule is broken, but for `report`, or a file cannot be read.
pub fn check(root: &Path, files: &[PathBuf], report: bool) -> anyhow::Result<()> {
    let mut texts = Texts::new();
    for file in files.iter().filter(|file| files::is_source(file)) {
        let text =
            fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file:?}"))?;
        texts.insert(file.clone(), text);
    }
    let mut broken = broken(&texts)?;
    broken.extend(readmes::broken(
        files.iter().map(PathBuf::as_path),
        &readmes(root, files)?,
    ));
    for line in &broken {
        eprintln!("{line}");
    }
    if broken.is_empty() || report {
        return Ok(());
    }
    bail!("{} rules of the house are broken", broken.len());
}

fn readmes(root: &Path, files: &[PathBuf]) -> anyhow::Result<readmes::Lines> {
    let mut lines = readmes::Lines::new();
    for file in files.iter().filter(|file| readmes::is_readme(file)) {
        let text =
            fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file:?}"))?;
        lines.insert(file.clone(), text.lines().count());
    }
    Ok(lines)
}

fn broken(texts: &Texts) -> anyhow::Result<Vec<String>> {
    let mut broken = files::crowded(texts.keys().map(PathBuf::as_path));
    for (file, text) in texts {
        broken.extend(files::too_long(file, text));
        broken.extend(files::repeats_folder(file));
    }
    broken.extend(headers::broken(texts));
    for root in texts.keys().filter(|file| modules::is_root(file)) {
        broken.extend(modules::Crate::read(root, texts)?.cycles());
    }
    Ok(broken)
}
