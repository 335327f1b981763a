// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page in a file.

use std::{fs, io, path::Path};

/// Writes it in one step: what was there before stays until the page is whole.
///
/// # Errors
/// When it cannot be written; then nothing of it is left.
pub fn write(path: &Path, page: &str) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = fs::write(&partial, page).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // It is told why; a rest that cannot be removed is nobody's page.
        let _ = fs::remove_file(&partial);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_whole_page_or_what_was_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("page.html");
        for page in ["first", "second"] {
            write(&path, page).expect("there is room");
            assert_eq!(fs::read_to_string(&path).expect("a page"), page);
        }
        // A folder is in the way of the page, not of its beginnings.
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).expect("made");
        assert!(write(&taken, "third").is_err());
        let names = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(names, 2, "nothing is left");
    }
}
