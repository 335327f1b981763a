// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an object was made of, from the compiler's own list (`-MD`), and whether that has changed since.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The build script runs again when this file, or any in this folder, has changed.
pub fn watch(path: &Path) {
    println!("cargo:rerun-if-changed={}", path.display());
}

/// The files of a rule as compilers write it: `OBJECT: FILE FILE \`, with `\ ` for a space, `\#` and `$$`.
pub(crate) fn read_rule(text: &str) -> Vec<PathBuf> {
    let Some((_, files)) = text.split_once(": ") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut file = String::new();
    let mut characters = files.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some(&escaped @ (' ' | '#' | '\\'))) => {
                file.push(escaped);
                characters.next();
            }
            ('\\', Some('\n')) => {}
            ('$', Some('$')) => {
                file.push('$');
                characters.next();
            }
            (' ' | '\n' | '\r' | '\t', _) => {
                if !file.is_empty() {
                    found.push(PathBuf::from(std::mem::take(&mut file)));
                }
            }
            _ => file.push(character),
        }
    }
    if !file.is_empty() {
        found.push(PathBuf::from(file));
    }
    found
}

/// An object's files beside it: the compiler's rule (`.d`), and the command that made it (`.command`), written when that began.
pub(crate) struct Made<'a> {
    object: &'a Path,
}

impl<'a> Made<'a> {
    pub(crate) fn new(object: &'a Path) -> Made<'a> {
        Made { object }
    }

    /// Where the compiler writes its rule.
    pub(crate) fn rule(&self) -> PathBuf {
        self.object.with_extension("d")
    }

    fn command(&self) -> PathBuf {
        self.object.with_extension("command")
    }

    /// What the object was made of. Relative paths are from `folder`, where the compiler ran.
    pub(crate) fn sources(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let files = read_rule(&fs::read_to_string(self.rule())?);
        Ok(files.into_iter().map(|file| folder.join(file)).collect())
    }

    /// Whether the object is there, made by this command, and nothing that it was made of has changed since that began.
    pub(crate) fn is_current(&self, command: &str, folder: &Path) -> bool {
        let current = || -> io::Result<bool> {
            if !self.object.exists() || fs::read_to_string(self.command())? != command {
                return Ok(false);
            }
            let began = changed(&self.command())?;
            for source in self.sources(folder)? {
                if changed(&source)? >= began {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        current().unwrap_or(false)
    }

    /// Before the command is run: an object is current only after it has ended well.
    pub(crate) fn begin(&self, command: &str) -> io::Result<()> {
        if let Some(folder) = self.object.parent() {
            fs::create_dir_all(folder)?;
        }
        if self.object.exists() {
            fs::remove_file(self.object)?;
        }
        fs::write(self.command(), command)
    }
}

fn changed(file: &Path) -> io::Result<SystemTime> {
    fs::metadata(file)?.modified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_compilers_are_read() {
        for (text, files) in [
            ("a.o: a.c", vec!["a.c"]),
            (
                "a.o: a.c /usr/b.h \\\n  c.h\n",
                vec!["a.c", "/usr/b.h", "c.h"],
            ),
            (
                "o: with\\ space.h cost$$s.h \\\n a\\#b.h",
                vec!["with space.h", "cost$s.h", "a#b.h"],
            ),
            ("o: \n", vec![]),
            ("", vec![]),
        ] {
            let expected: Vec<PathBuf> = files.into_iter().map(PathBuf::from).collect();
            assert_eq!(read_rule(text), expected, "{text}");
        }
    }

    #[test]
    fn an_object_is_current_until_its_command_or_a_source_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, object) = (folder.path().join("a.h"), folder.path().join("a.o"));
        let made = Made::new(&object);
        let make = |command: &str| {
            made.begin(command).expect("written");
            fs::write(&object, "object").expect("written");
            fs::write(made.rule(), "a.o: a.h").expect("written");
        };
        let set = |seconds: i64| {
            let began = changed(&made.command()).expect("there");
            let distance = std::time::Duration::from_secs(seconds.unsigned_abs());
            let time = if seconds < 0 {
                began - distance
            } else {
                began + distance
            };
            let file = fs::File::options().write(true).open(&source);
            file.expect("there").set_modified(time).expect("set");
        };
        fs::write(&source, "text").expect("written");
        assert!(!made.is_current("cc", folder.path()), "never made");
        make("cc");
        set(-1);
        assert!(made.is_current("cc", folder.path()));
        assert!(!made.is_current("cc -O2", folder.path()), "another command");
        set(0);
        assert!(!made.is_current("cc", folder.path()), "changed meanwhile");
        set(1);
        assert!(!made.is_current("cc", folder.path()), "changed since");
        set(-1);
        made.begin("cc").expect("written");
        assert!(!made.is_current("cc", folder.path()), "it did not end well");
        make("cc");
        fs::remove_file(&source).expect("there");
        assert!(!made.is_current("cc", folder.path()), "a source is gone");
    }
}
