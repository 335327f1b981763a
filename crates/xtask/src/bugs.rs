// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seeded bugs: `tests/mutants/*.toml`, one file per room of the tree.
//!
//! A bug is a set of edits and the test that must fail while they are in place. An edit replaces text that stands exactly
//! once in its file, so a bug survives every change of the file except one of the lines that it is about.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// One bug.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// Tells it from all others.
    pub name: String,
    /// The rule that it breaks.
    pub rule: String,
    /// Arguments of `cargo test` for the test that must fail.
    pub test: String,
    /// How long that test may take.
    #[serde(default = "default_seconds")]
    pub seconds: u64,
    /// What is changed.
    #[serde(rename = "edit")]
    pub edits: Vec<Edit>,
}

/// One change of one file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Relative to the repository's top folder.
    pub file: PathBuf,
    /// Text that stands exactly once in it.
    pub old: String,
    /// What stands there instead.
    pub new: String,
}

#[derive(Deserialize)]
struct File {
    bug: Vec<Bug>,
}

fn default_seconds() -> u64 {
    180
}

/// All bugs, in the order of the files' names; of `names` only, unless that is empty.
///
/// # Errors
/// When a file is wrong, two bugs have one name, or nobody has a wanted one.
pub fn read(root: &Path, names: &[String]) -> anyhow::Result<Vec<Bug>> {
    let folder = root.join("tests/mutants");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("{} cannot be read", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let mut bugs: Vec<Bug> = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        let of_file: File = toml::from_str(&text).with_context(|| file.display().to_string())?;
        for bug in of_file.bug {
            ensure!(
                bugs.iter().all(|other| other.name != bug.name),
                "{}: two bugs are called {}",
                file.display(),
                bug.name
            );
            bugs.push(bug);
        }
    }
    if let Some(name) = names
        .iter()
        .find(|name| bugs.iter().all(|bug| bug.name != **name))
    {
        bail!("no seeded bug of {} is called {name}", folder.display());
    }
    bugs.retain(|bug| names.is_empty() || names.contains(&bug.name));
    Ok(bugs)
}

impl Bug {
    /// Files that it changes, each once.
    pub fn files(&self) -> Vec<&Path> {
        let mut files: Vec<&Path> = self.edits.iter().map(|edit| edit.file.as_path()).collect();
        files.sort();
        files.dedup();
        files
    }

    /// Makes its edits in the tree below that folder; nothing is changed when one cannot be made.
    ///
    /// # Errors
    /// When a file cannot be read or written, or the old text does not stand exactly once in it.
    pub fn plant(&self, tree: &Path) -> anyhow::Result<()> {
        let mut planted: Vec<(PathBuf, String)> = Vec::new();
        for file in self.files() {
            let path = tree.join(file);
            let mut text = fs::read_to_string(&path)
                .with_context(|| format!("{} cannot be read", file.display()))?;
            for edit in self.edits.iter().filter(|edit| edit.file == file) {
                let times = text.matches(&edit.old).count();
                ensure!(
                    times == 1,
                    "{}: the text to replace stands {times} times in it: {:?}",
                    file.display(),
                    edit.old
                );
                text = text.replacen(&edit.old, &edit.new, 1);
            }
            planted.push((path, text));
        }
        for (path, text) in planted {
            fs::write(&path, text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bug(old: &str) -> Bug {
        let text = format!(
            "name = 'n'\nrule = 'r'\ntest = '-p x'\n[[edit]]\nfile = 'a.h'\nold = '{old}'\nnew = 'two'\n"
        );
        toml::from_str(&text).expect("a bug")
    }

    #[test]
    fn text_that_stands_once_is_replaced_and_any_other_refused() {
        let tree = tempfile::tempdir().expect("a folder");
        let file = tree.path().join("a.h");
        fs::write(&file, "one and three, three").expect("written");
        assert!(bug("four").plant(tree.path()).is_err());
        assert!(bug("three").plant(tree.path()).is_err());
        bug("one").plant(tree.path()).expect("planted");
        assert_eq!(
            fs::read_to_string(&file).expect("read"),
            "two and three, three"
        );
    }

    #[test]
    fn names_are_checked() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("tests/mutants");
        fs::create_dir_all(&folder).expect("made");
        let one = "[[bug]]\nname = 'n'\nrule = 'r'\ntest = '-p x'\nedit = []\n";
        fs::write(folder.join("a.toml"), one).expect("written");
        assert_eq!(read(root.path(), &[]).expect("one").len(), 1);
        let error = read(root.path(), &["m".to_owned()]).expect_err("no such bug");
        assert!(error.to_string().contains("called m"), "{error}");
        fs::write(folder.join("b.toml"), one).expect("written");
        let error = read(root.path(), &[]).expect_err("twice");
        assert!(error.to_string().contains("two bugs"), "{error}");
    }
}
