// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compressed files of the cache, unpacked beside the original once, so that no boot has to do it in the emulator.

use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::error::Error;

/// The unpacked form of `packed` at `plain`: made by `unpack` when it is not there or older.
///
/// `unpack` gets the packed bytes; when it returns `None` the file is to be used as it is, and `packed` is returned.
///
/// # Errors
/// [`Error::File`] when the cache cannot be read or written or the contents are broken; whatever `unpack` says.
pub fn beside(
    packed: &Path,
    plain: PathBuf,
    unpack: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, Error>,
) -> Result<PathBuf, Error> {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified());
    let packed_at = changed(packed).map_err(|source| file("reading", packed, source))?;
    if changed(&plain).is_ok_and(|plain_at| plain_at >= packed_at) {
        return Ok(plain);
    }
    let contents = std::fs::read(packed).map_err(|source| file("reading", packed, source))?;
    let Some(unpacked) = unpack(&contents)? else {
        return Ok(packed.into());
    };
    write_whole(&plain, &unpacked)?;
    Ok(plain)
}

/// A kernel module as it is to be loaded: `x.ko.xz` is unpacked to `x.ko`, anything else is taken as it is.
///
/// # Errors
/// As [`beside`].
pub fn module(path: &Path) -> Result<PathBuf, Error> {
    if path.extension().is_none_or(|extension| extension != "xz") {
        return Ok(path.into());
    }
    beside(path, path.with_extension(""), |mut packed| {
        let mut unpacked = Vec::new();
        match lzma_rs::xz_decompress(&mut packed, &mut unpacked) {
            Ok(()) => Ok(Some(unpacked)),
            Err(error) => Err(broken(path, &error)),
        }
    })
}

/// Under its name only when it is whole: two runs at once, or an interrupted one, must not leave half a file.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        let readable = std::fs::Permissions::from_mode(0o644); // Set-up may run as root, the testbed as a user.
        let mut whole = tempfile::Builder::new()
            .permissions(readable)
            .tempfile_in(folder)?;
        whole.write_all(bytes)?;
        whole.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|source| file("writing", path, source))
}

/// What is said of a packed file that cannot be unpacked.
pub fn broken(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string());
    file("unpacking", path, source)
}

fn file(doing: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::File {
        doing,
        path: path.into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(name: &str, contents: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(name);
        std::fs::write(&path, contents).expect("file");
        (folder, path)
    }

    fn packed(contents: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        lzma_rs::xz_compress(&mut &*contents, &mut packed).expect("a vector takes everything");
        packed
    }

    #[test]
    fn a_module_is_unpacked_once_and_again_when_it_changes() {
        let (folder, path) = folder_with("kvm.ko.xz", &packed(b"first"));
        let plain = module(&path).expect("packed");
        assert_eq!(plain, folder.path().join("kvm.ko"));
        assert_eq!(std::fs::read(&plain).expect("there"), b"first");
        std::fs::write(&plain, b"kept").expect("file");
        assert_eq!(module(&path).expect("fresh"), plain);
        assert_eq!(std::fs::read(&plain).expect("there"), b"kept");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::write(&path, packed(b"second")).expect("file");
        let file = std::fs::File::options().append(true).open(&path);
        file.and_then(|file| file.set_modified(later))
            .expect("time");
        assert_eq!(
            std::fs::read(module(&path).expect("packed")).expect("there"),
            b"second"
        );
        let files = std::fs::read_dir(folder.path()).expect("there").count();
        assert_eq!(files, 2, "nothing temporary is left");
    }

    #[test]
    fn a_plain_module_is_taken_as_it_is_and_a_broken_one_refused() {
        let (_folder, path) = folder_with("kvm.ko", b"plain");
        assert_eq!(module(&path).expect("plain"), path);
        let (folder, path) = folder_with("kvm.ko.xz", &packed(&[7; 1000])[..40]);
        let message = module(&path).expect_err("cut").to_string();
        assert!(
            message.contains("unpacking") && message.contains("kvm.ko.xz"),
            "{message}"
        );
        assert!(!folder.path().join("kvm.ko").exists());
    }
}
