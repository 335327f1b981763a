// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of this machine's files is copied into the testbed.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File},
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::error::Error;

/// A file of the host that is copied into the testbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Where it lies on the host.
    pub host: PathBuf,
    /// Where it will lie in the testbed; a relative path counts from [`Options::WORKING_DIRECTORY`](crate::Options::WORKING_DIRECTORY).
    pub guest: PathBuf,
    /// Whether it can be executed there.
    pub executable: bool,
}

impl Input {
    /// What a command needs: the files that it names, and what is to be brought besides: files, and folders with all that lies in
    /// them. Each under the same name in the testbed, programs with their shared libraries.
    ///
    /// # Errors
    /// When something that is to be brought is not there or cannot be read.
    pub fn of(command: &[OsString], bring: &[PathBuf]) -> Result<Vec<Input>, Error> {
        let mut inputs = Input::named_by(command);
        for path in bring {
            below(path, &mut inputs)?;
        }
        let mut seen = HashSet::new();
        inputs.retain(|input| seen.insert(input.guest.clone()));
        Ok(inputs)
    }

    /// A file of this machine, under the same name in the testbed.
    fn same(path: &Path, executable: bool) -> Input {
        Input {
            host: path.to_owned(),
            guest: path.to_owned(),
            executable,
        }
    }

    /// The file, and if it is a program its libraries.
    fn file(path: &Path, file: &fs::Metadata) -> Vec<Input> {
        if file.permissions().mode() & 0o111 != 0 {
            Input::program(path)
        } else {
            vec![Input::same(path, false)]
        }
    }

    /// A program with the shared libraries that this machine's loader names for it, a script with its interpreter and that one's, under
    /// the same names in the testbed. A program that is linked statically has none.
    pub fn program(path: &Path) -> Vec<Input> {
        let needed: Vec<PathBuf> = match interpreter(path) {
            Some(interpreter) => {
                let libraries = libraries_of(&interpreter);
                std::iter::once(interpreter).chain(libraries).collect()
            }
            None => libraries_of(path),
        };
        std::iter::once(path)
            .chain(needed.iter().map(PathBuf::as_path))
            .map(|path| Input::same(path, true))
            .collect()
    }

    /// The words of a command that name a file of this machine. The first word is one only where it has a slash: the testbed looks
    /// for the others in its own PATH.
    fn named_by(command: &[OsString]) -> Vec<Input> {
        let files = |word: &OsString| {
            let path = Path::new(word);
            match path.metadata() {
                Ok(file) if file.is_file() => Input::file(path, &file),
                _ => Vec::new(),
            }
        };
        let has_slash = |word: &OsString| word.as_encoded_bytes().contains(&b'/');
        let first = command.iter().take(1).filter(|word| has_slash(word));
        let words = first.chain(command.iter().skip(1));
        words.flat_map(files).collect()
    }
}

/// Its first bytes, as many as the kernel looks at (`BINPRM_BUF_SIZE`, include/uapi/linux/binfmts.h, Linux 7.2).
fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(path).map(|file| file.take(256));
    // What cannot be read here is said when it is copied.
    let _ = file.and_then(|mut file| file.read_to_end(&mut bytes));
    bytes
}

/// What a script's first line says that it is run by.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let beginning = beginning(path);
    let line = beginning.strip_prefix(b"#!")?.split(|&byte| byte == b'\n');
    let line = String::from_utf8_lossy(line.into_iter().next()?).into_owned();
    let program = line.split_whitespace().next().map(PathBuf::from)?;
    program.is_file().then_some(program)
}

/// What ldd names; nothing of what is no ELF file, which is not asked.
fn libraries_of(path: &Path) -> Vec<PathBuf> {
    if !beginning(path).starts_with(b"\x7fELF") {
        return Vec::new();
    }
    let said = Command::new("ldd").arg(path).output();
    let said = said.ok().filter(|said| said.status.success());
    String::from_utf8_lossy(&said.map_or(Vec::new(), |said| said.stdout))
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .collect()
}

/// The file, or all files below the folder, in order of their names. A link to a file is copied as that file; one to a folder, or to
/// nothing, is left out there, since it may lead round in a circle.
fn below(path: &Path, into: &mut Vec<Input>) -> Result<(), Error> {
    let failed = |source| Error::File {
        doing: "reading",
        path: path.to_owned(),
        source,
    };
    let found = path.metadata().map_err(failed)?;
    if !found.is_dir() {
        into.extend(Input::file(path, &found));
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(failed)?;
    let entries: Result<Vec<_>, _> = entries.collect();
    let mut entries = entries.map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let linked = entry.file_type().map_err(failed)?.is_symlink();
        let to_file = || entry.path().metadata().is_ok_and(|file| file.is_file());
        if !linked || to_file() {
            below(&entry.path(), into)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn of(words: &[OsString]) -> Vec<Input> {
        Input::of(words, &[]).expect("nothing besides")
    }

    #[test]
    fn the_command_itself_is_brought_where_it_is_a_path() {
        let brought = |line: &str| -> Vec<PathBuf> {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            of(&words).into_iter().map(|input| input.guest).collect()
        };
        assert_eq!(
            brought("./Cargo.toml ./build.rs"),
            [Path::new("./Cargo.toml")]
        );
        assert_eq!(brought("Cargo.toml Cargo.toml"), [Path::new("Cargo.toml")]);
        assert!(brought("Cargo.toml").is_empty());
    }

    #[test]
    fn files_that_the_command_names_go_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("s.toml");
        std::fs::write(&file, "x").expect("written");
        let words = [
            "unspin".into(),
            "vm".into(),
            file.clone().into(),
            folder.path().into(),
        ];
        let found = of(&words);
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].host, &found[0].guest), (&file, &file));
        assert!(!found[0].executable);
    }

    #[test]
    fn a_program_comes_with_its_libraries_once() {
        let words = ["unspin", "/bin/sh", "/bin/cat", "/bin/sh"].map(OsString::from);
        let found = of(&words);
        let named = |name: &str| {
            let named = |input: &&Input| input.guest.to_string_lossy().contains(name);
            found.iter().filter(named).count()
        };
        assert_eq!(["/bin/sh", "/bin/cat", "libc.so"].map(named), [1, 1, 1]);
        assert!(found.iter().all(|input| input.executable));
    }

    #[test]
    fn a_script_comes_with_its_interpreter() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("script");
        let brought = |text: &str| -> Vec<PathBuf> {
            fs::write(&script, text).expect("written");
            let found = Input::program(&script);
            found.into_iter().map(|input| input.guest).collect()
        };
        let found = brought("#! /bin/sh -e\n/bin/cat\n");
        assert_eq!(found[..2], [script.clone(), "/bin/sh".into()]);
        let libc = |path: &PathBuf| path.ends_with("libc.so.6");
        assert!(found.iter().any(libc), "{found:?}");
        // No such interpreter, none named, a line of no text, no line.
        for text in ["#!/no/such/program\n", "#!\n", "#!\u{0}\n", "#"] {
            assert_eq!(brought(text), std::slice::from_ref(&script), "{text:?}");
        }
    }

    #[test]
    fn folders_come_with_all_that_lies_in_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).expect("folders");
        fs::write(at("a/b/file"), "x").expect("written");
        fs::write(at("z"), "x").expect("written");
        symlink("b/file", at("a/linked")).expect("a link");
        symlink("..", at("a/circle")).expect("a link");
        symlink("nowhere", at("a/broken")).expect("a link");
        let bring = [folder.path().to_owned(), at("z")];
        let found = Input::of(&[], &bring).expect("all are there");
        let found: Vec<PathBuf> = found.into_iter().map(|input| input.guest).collect();
        assert_eq!(found, [at("a/b/file"), at("a/linked"), at("z")]);
        let missing = Input::of(&[], &[at("missing")]).expect_err("it is not there");
        assert!(missing.to_string().contains("missing"), "{missing}");
    }
}
