// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that come back from the testbed. What the testbed sends is not trusted: no path leaves the folder given.

use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;

/// Receives files into one folder; a file appears under its name only when it is whole.
pub struct Returned {
    folder: PathBuf,
    open: Option<(File, PathBuf, PathBuf)>,
    /// The files received so far, relative to the folder, in the order in which they came.
    pub files: Vec<PathBuf>,
}

impl Returned {
    /// Will write below `folder`, which is made when the first file comes.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            open: None,
            files: Vec::new(),
        }
    }

    /// A file begins.
    ///
    /// # Errors
    /// [`Error::Init`] for a path that is not plain and relative, [`Error::File`].
    pub fn begin(&mut self, name: &[u8]) -> Result<(), Error> {
        let relative = Path::new(std::ffi::OsStr::from_bytes(name));
        let plain = relative
            .components()
            .all(|component| matches!(component, Component::Normal(_)));
        if !plain || relative.file_name().is_none() || name.contains(&0) {
            return Err(Error::Init(format!(
                "it sent back a file with the path {relative:?}"
            )));
        }
        let path = self.folder.join(relative);
        let mut partial = path.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let parent = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(parent).map_err(|source| writing(parent, source))?;
        let file = File::create(&partial).map_err(|source| writing(&partial, source))?;
        self.open = Some((file, partial, path));
        Ok(())
    }

    /// Bytes of the file last begun.
    ///
    /// # Errors
    /// [`Error::Init`] when none was begun, [`Error::File`].
    pub fn data(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (file, partial, _) = self.open.as_mut().ok_or_else(no_file)?;
        file.write_all(bytes)
            .map_err(|source| writing(partial, source))
    }

    /// The file last begun is whole.
    ///
    /// # Errors
    /// As [`Returned::data`].
    pub fn end(&mut self) -> Result<(), Error> {
        let (_, partial, path) = self.open.as_ref().ok_or_else(no_file)?;
        std::fs::rename(partial, path).map_err(|source| writing(path, source))?;
        self.files.push(
            path.strip_prefix(&self.folder)
                .unwrap_or(path)
                .to_path_buf(),
        );
        self.open = None;
        Ok(())
    }
}

impl Drop for Returned {
    fn drop(&mut self) {
        if let Some((_, partial, _)) = &self.open {
            let _ = std::fs::remove_file(partial); // Half a file is worse than none.
        }
    }
}

fn writing(path: &Path, source: std::io::Error) -> Error {
    Error::File {
        doing: "writing",
        path: path.into(),
        source,
    }
}

fn no_file() -> Error {
    Error::Init("it sent bytes of a file without naming it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_files_appear_and_half_ones_do_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("new/out");
        let mut returned = Returned::new(out.clone());
        returned.begin(b"a/b.txt").expect("plain");
        returned.data(b"he").expect("open");
        returned.data(b"llo").expect("open");
        assert!(!out.join("a/b.txt").exists());
        returned.end().expect("open");
        assert_eq!(std::fs::read(out.join("a/b.txt")).expect("there"), b"hello");
        returned.begin(b"half").expect("plain");
        assert_eq!(returned.files, [PathBuf::from("a/b.txt")]);
        drop(returned);
        let names: Vec<_> = std::fs::read_dir(out)
            .expect("there")
            .map(|entry| entry.expect("entry").file_name())
            .collect();
        assert_eq!(names, ["a"]);
    }

    #[test]
    fn no_path_leaves_the_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut returned = Returned::new(folder.path().join("out"));
        for name in [&b"../x"[..], b"/etc/x", b"a/../../x", b"", b".", b"a\0b"] {
            assert!(returned.begin(name).is_err(), "{name:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0);
    }

    #[test]
    fn bytes_without_a_file_are_refused() {
        let mut returned = Returned::new("/nonexistent".into());
        assert!(returned.data(b"x").is_err());
        assert!(returned.end().is_err());
    }
}
