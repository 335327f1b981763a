// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes and threads, as /proc lists them.

use std::{fs, path::Path};

/// The folder's entries that are numbers, ascending.
pub(crate) fn numbers_in(folder: &Path) -> Vec<u32> {
    numbered_in(folder, "")
}

/// The numbers of the folder's entries that are called so and a number, ascending.
pub(crate) fn numbered_in(folder: &Path, name: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| {
        let entry = entry.file_name();
        entry.to_str()?.strip_prefix(name)?.parse().ok()
    };
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_processes() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["12", "7", "self", "7x"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        assert_eq!(numbers_in(folder.path()), [7, 12]);
        assert_eq!(numbered_in(folder.path(), "1"), [2]);
        assert_eq!(numbers_in(&folder.path().join("none")), Vec::<u32>::new());
    }
}
