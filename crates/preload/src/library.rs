// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library as a file that the dynamic linker can find.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    hash::{DefaultHasher, Hasher},
    io::Write,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use crate::Error;

/// The shared library, compiled with this binary.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libunspin-preload.so"));

/// The folder for files that can be made again: XDG_CACHE_HOME, or ~/.cache; without a home the system's folder for temporary
/// files, in one of this user's own.
fn cache() -> PathBuf {
    let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(cache) = given("XDG_CACHE_HOME") {
        return PathBuf::from(cache).join("unspin");
    }
    match given("HOME") {
        Some(home) => PathBuf::from(home).join(".cache/unspin"),
        // SAFETY: geteuid() has no preconditions.
        None => env::temp_dir().join(format!("unspin-{}", unsafe { libc::geteuid() })),
    }
}

/// Puts the library where it is not yet, whole or not at all, and returns its path. Every version has a file of its own, so that
/// programs that run keep theirs.
///
/// # Errors
/// When it cannot be written, or LD_PRELOAD cannot name the path.
pub fn place() -> Result<PathBuf, Error> {
    let mut hasher = DefaultHasher::new();
    hasher.write(LIBRARY);
    let folder = cache().join(format!("preload-{:016x}", hasher.finish()));
    let path = folder.join("libunspin-preload.so");
    check_separators(&path)?;
    if fs::read(&path).is_ok_and(|there| there == LIBRARY) {
        return Ok(path);
    }
    let failed = |error| Error::Unwritable(path.clone(), error);
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(&folder).map_err(failed)?;
    file.write_all(LIBRARY).map_err(failed)?;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o755))
        .map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(path)
}

fn check_separators(path: &Path) -> Result<(), Error> {
    let separators = |byte: &u8| byte.is_ascii_whitespace() || *byte == b':';
    match path.as_os_str().as_bytes().iter().any(separators) {
        true => Err(Error::Separator(path.to_owned())),
        false => Ok(()),
    }
}

/// LD_PRELOAD with this library before those that are there.
pub(crate) fn preload(library: &Path, before: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        value.push(":");
        value.push(before);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_were_preloaded_stay() {
        let library = Path::new("/a/b.so");
        assert_eq!(preload(library, None), "/a/b.so");
        assert_eq!(preload(library, Some(OsStr::new(""))), "/a/b.so");
        assert_eq!(preload(library, Some(OsStr::new("c.so"))), "/a/b.so:c.so");
    }

    #[test]
    fn paths_that_ld_preload_would_take_apart_are_refused() {
        for path in ["/a b/c.so", "/a:b/c.so", "/a\tb"] {
            assert!(check_separators(Path::new(path)).is_err(), "{path}");
        }
        assert!(check_separators(Path::new("/a-b_c/d.so")).is_ok());
    }

    #[test]
    fn the_library_is_one() {
        assert!(LIBRARY.starts_with(b"\x7fELF"));
    }
}
