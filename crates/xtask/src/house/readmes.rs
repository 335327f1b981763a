// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each room has a README of one page: the top folders, and every crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Lines a room's README may have.
const README_LINES: usize = 40;

/// The READMEs of rooms, and how many lines each has. The one at the top has a limit of its own.
pub type Lines = BTreeMap<PathBuf, usize>;

/// Whether it is a room's README.
pub fn is_readme(file: &Path) -> bool {
    file.ends_with("README.md") && file.iter().count() > 1
}

/// Rooms without a README and READMEs that are too long, a line each.
pub fn broken<'a>(files: impl Iterator<Item = &'a Path>, readmes: &Lines) -> Vec<String> {
    let rooms: BTreeSet<PathBuf> = files.filter_map(room).collect();
    let missing = rooms
        .iter()
        .map(|room| room.join("README.md"))
        .filter(|readme| !readmes.contains_key(readme))
        .map(|readme| format!("{}: is missing, each room has one", readme.display()));
    let long = readmes
        .iter()
        .filter(|(_, lines)| **lines > README_LINES)
        .map(|(readme, lines)| {
            let readme = readme.display();
            format!("{readme}: {lines} lines, a room's README has {README_LINES} at most")
        });
    missing.chain(long).collect()
}

/// The room that a file is in; `None`: a file at the top, or of a tool (`.cargo`).
fn room(file: &Path) -> Option<PathBuf> {
    let names: Vec<&str> = file.iter().filter_map(|name| name.to_str()).collect();
    match names[..] {
        ["crates", name, _, ..] => Some(Path::new("crates").join(name)),
        [first, _, ..] if !first.starts_with('.') => Some(first.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[&str], readmes: &[(&str, usize)]) -> Vec<String> {
        let readmes = readmes
            .iter()
            .map(|(file, lines)| (PathBuf::from(file), *lines))
            .collect();
        broken(files.iter().map(Path::new), &readmes)
    }

    #[test]
    fn rooms_are_top_folders_and_crates() {
        let files = [
            "Makefile",
            ".cargo/config.toml",
            "bpf/watch/main.bpf.c",
            "crates/a/src/lib.rs",
            "crates/a/Cargo.toml",
            "crates/README.md",
        ];
        assert_eq!(
            check(&files, &[("crates/README.md", 8)]),
            [
                "bpf/README.md: is missing, each room has one",
                "crates/a/README.md: is missing, each room has one"
            ]
        );
    }

    #[test]
    fn a_readme_of_forty_lines_is_not_too_long_but_one_more_is() {
        let files = ["bpf/README.md"];
        assert_eq!(check(&files, &[("bpf/README.md", 40)]), [""; 0]);
        assert_eq!(
            check(&files, &[("bpf/README.md", 41)]),
            ["bpf/README.md: 41 lines, a room's README has 40 at most"]
        );
    }

    #[test]
    fn the_readme_at_the_top_is_no_rooms() {
        assert!(!is_readme(Path::new("README.md")));
        assert!(is_readme(Path::new("docs/decisions/README.md")));
        assert!(!is_readme(Path::new("docs/start.md")));
    }
}
