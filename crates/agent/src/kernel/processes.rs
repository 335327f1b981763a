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

/// Whether that number is a process's, and not a thread's. `proc`: /proc.
pub(crate) fn is_process(proc: &Path, number: u32) -> bool {
    let status = fs::read_to_string(proc.join(format!("{number}/status"))).unwrap_or_default();
    let leader = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    leader.and_then(|text| text.trim().parse().ok()) == Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_no_process() {
        let proc = Path::new("/proc");
        assert!(is_process(proc, std::process::id()));
        let thread = std::thread::spawn(|| {
            // SAFETY: it only tells a number.
            let thread = unsafe { libc::gettid() } as u32;
            is_process(Path::new("/proc"), thread)
        });
        assert!(!thread.join().expect("it ends"));
        assert!(!is_process(proc, u32::MAX));
    }

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
