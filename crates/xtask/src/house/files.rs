// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many sources a folder has, how long they are, how they are called.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// Sources a folder may have.
const FOLDER_SOURCES: usize = 20;
/// Lines a source may have.
const SOURCE_LINES: usize = 500;
/// What ends the name of a source.
const SOURCES: [&str; 4] = ["rs", "c", "h", "S"];
/// Folders that are named for what cargo or the C build does with them: what stands there is the crate's.
const PLAIN_FOLDERS: [&str; 4] = ["src", "tests", "c", "native"];

/// Whether it is a source, by its name.
pub fn is_source(file: &Path) -> bool {
    extension(file).is_some_and(|extension| SOURCES.contains(&extension))
}

fn extension(file: &Path) -> Option<&str> {
    file.extension().and_then(OsStr::to_str)
}

/// Folders with too many sources, a line each.
pub fn crowded<'a>(files: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let mut folders: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for file in files {
        let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        *folders.entry(folder).or_default() += 1;
    }
    folders
        .into_iter()
        .filter(|(_, sources)| *sources > FOLDER_SOURCES)
        .map(|(folder, sources)| {
            let folder = folder.display();
            format!("{folder}: {sources} sources, a folder has {FOLDER_SOURCES} at most")
        })
        .collect()
}

/// What is wrong with a source that has too many lines.
pub fn too_long(file: &Path, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > SOURCE_LINES).then(|| {
        let file = file.display();
        format!("{file}: {lines} lines, a source has {SOURCE_LINES} at most")
    })
}

/// What is wrong with a source whose name begins with that of its folder: of the crate for those in src/, tests/, c/ and
/// native/. `window` begins as `windows` does. A Rust file may not be called as its folder either, there `mod.rs` is what
/// this would be.
pub fn repeats_folder(file: &Path) -> Option<String> {
    let stem = words(file.file_name()?.to_str()?.split('.').next()?);
    let folder = file.parent()?;
    let name = folder.file_name()?.to_str()?;
    let plain = PLAIN_FOLDERS.contains(&name);
    let name = if plain {
        words(folder.parent()?.file_name()?.to_str()?)
    } else {
        words(name)
    };
    let one = name.strip_suffix('s').unwrap_or(&name);
    let begins = [&name, one].iter().any(|name| {
        stem.strip_prefix(*name)
            .is_some_and(|rest| rest.starts_with('_'))
    });
    let is = !plain && extension(file) == Some("rs") && stem == name;
    (begins || is).then(|| {
        let file = file.display();
        format!("{file}: its name says again what its folder says")
    })
}

fn words(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_sources_are_not_too_many_in_a_folder_but_twenty_one_are() {
        let files: Vec<PathBuf> = (0..21).map(|n| format!("guest/{n}.c").into()).collect();
        let below: Vec<PathBuf> = (0..21).map(|n| format!("guest/{n}/a.c").into()).collect();
        let crowded = |files: &[PathBuf]| crowded(files.iter().map(PathBuf::as_path));
        assert!(crowded(&files[..20]).is_empty());
        assert!(crowded(&below).is_empty());
        let found = crowded(&files);
        assert_eq!(found, ["guest: 21 sources, a folder has 20 at most"]);
    }

    #[test]
    fn five_hundred_lines_are_not_too_many_but_one_more_is() {
        assert_eq!(too_long(Path::new("a.rs"), &"\n".repeat(500)), None);
        let found = too_long(Path::new("a.rs"), &"\n".repeat(501)).unwrap();
        assert!(found.starts_with("a.rs: 501 lines"), "{found}");
    }

    #[test]
    fn names_that_repeat_their_folder_are_found() {
        let bad = [
            "bpf/window/window_epoch.bpf.h",
            "crates/agent/tests/windows/window_host.rs",
            "crates/cli/src/lab-compare/lab_compare_row.rs",
            "crates/events/src/event_codec.rs",
            "crates/lab/c/lab_platform.h",
            "crates/policy/tests/user_policy/user_policy.rs",
        ];
        for file in bad {
            assert!(repeats_folder(Path::new(file)).is_some(), "{file}");
        }
    }

    #[test]
    fn names_that_only_share_letters_or_name_the_room_are_not() {
        let good = [
            "bpf/observe/main.bpf.c",
            "crates/agent/src/observe/observer.rs",
            "crates/events/src/event.rs",
            "crates/lab/c/platform_lab.h",
            "crates/testbed/tests/testbed.rs",
            "crates/window/src/steer/window_epoch.rs",
            "guest/guest.h",
            "build.rs",
        ];
        for file in good {
            assert_eq!(repeats_folder(Path::new(file)), None, "{file}");
        }
    }
}
