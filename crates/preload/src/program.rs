// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program that is to run: where it is, and whether a library can be loaded into it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use object::{
    Endianness,
    elf::{ET_DYN, ET_EXEC, FileHeader64, PT_INTERP},
    read::elf::{FileHeader, ProgramHeader},
};

use crate::Error;

/// A program and its arguments.
#[derive(Debug)]
pub struct Program {
    /// As it was given.
    pub name: OsString,
    /// Where it is.
    pub path: PathBuf,
    /// What follows it.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// Finds the program, in the folders of PATH if its name has no slash.
    ///
    /// # Errors
    /// When there is none, it cannot be read, or no library can be loaded into it. Of a script only the first line counts, so
    /// what it starts is not looked at.
    pub fn find(name: &OsStr, arguments: &[OsString]) -> Result<Program, Error> {
        let path = locate(name, env::var_os("PATH").as_deref())?;
        check(&path)?;
        Ok(Program {
            name: name.to_owned(),
            path,
            arguments: arguments.to_vec(),
        })
    }
}

fn locate(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    let given = PathBuf::from(name);
    if given.components().count() > 1 || given.is_absolute() {
        return match given.is_file() {
            true => Ok(given),
            false => Err(Error::Missing(given)),
        };
    }
    let folders = path.map(env::split_paths).into_iter().flatten();
    let mut candidates = folders.map(|folder| folder.join(&given));
    let found = candidates.find(|candidate| is_executable(candidate));
    found.ok_or(Error::Missing(given))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Whether the dynamic linker will load a library into it.
fn check(path: &Path) -> Result<(), Error> {
    let unreadable = |error| Error::Unreadable(path.to_owned(), error);
    let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
    if mode & 0o111 == 0 {
        let error = io::Error::new(io::ErrorKind::PermissionDenied, "not executable");
        return Err(unreadable(error));
    }
    if mode & 0o6000 != 0 {
        return Err(Error::SetId(path.to_owned()));
    }
    let mut first = Vec::new();
    // Program headers come first in every program that a linker has written.
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(1 << 16)
        .read_to_end(&mut first)
        .map_err(unreadable)?;
    if !first.starts_with(b"\x7fELF") {
        return Ok(());
    }
    match has_interpreter(&first) {
        Some(true) => Ok(()),
        Some(false) => Err(Error::Static(path.to_owned())),
        None => Err(Error::Foreign(path.to_owned())),
    }
}

/// Whether the program names a dynamic linker; `None`: it is none of this machine's kind.
fn has_interpreter(bytes: &[u8]) -> Option<bool> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let own = if cfg!(target_arch = "aarch64") {
        object::elf::EM_AARCH64
    } else {
        object::elf::EM_X86_64
    };
    if header.e_machine(endian) != own || ![ET_EXEC, ET_DYN].contains(&header.e_type(endian)) {
        return None;
    }
    let segments = header.program_headers(endian, bytes).ok()?;
    let kinds = segments.iter().map(|segment| segment.p_type(endian));
    Some(kinds.into_iter().any(|kind| kind == PT_INTERP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_folders_of_path() {
        let path = Some(OsStr::new("/nowhere:/bin:/usr/bin"));
        let found = locate(OsStr::new("sh"), path).expect("there is a shell");
        assert!(found.ends_with("sh") && found.is_absolute());
        for missing in [
            "no-such-program",
            "/bin/no-such-program",
            "./no-such-program",
            "",
        ] {
            assert!(locate(OsStr::new(missing), path).is_err(), "{missing}");
        }
    }

    #[test]
    fn what_cannot_be_preloaded_is_refused() {
        // This test itself is linked statically (.cargo/config.toml).
        let own = env::current_exe().expect("a path");
        assert!(matches!(check(&own), Err(Error::Static(_))));
        check(Path::new("/bin/sh")).expect("linked dynamically");
        let folder = tempfile::tempdir().expect("a folder");
        let with = |name: &str, mode: u32, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
            path
        };
        check(&with("script", 0o755, b"#!/bin/sh\n")).expect("a script is left to its interpreter");
        let plain = check(&with("plain", 0o644, b"#!/bin/sh\n"));
        assert!(matches!(plain, Err(Error::Unreadable(..))));
        let set_id = check(&with("set-id", 0o4755, b"#!/bin/sh\n"));
        assert!(matches!(set_id, Err(Error::SetId(_))));
        let foreign = check(&with("foreign", 0o755, b"\x7fELF\x01\x01\x01 32 bits"));
        assert!(matches!(foreign, Err(Error::Foreign(_))));
    }
}
