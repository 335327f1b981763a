// SPDX-License-Identifier: MIT OR Apache-2.0
//! Last results of checks that are not part of `make test`: a table of tab-separated values in the tree, a row per check.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use anyhow::Context;

/// Every such table; that one of them changes is no change of what runs.
pub const FILES: [&str; 2] = [LONG, MUTANTS];
pub const LONG: &str = "tests/long/results.tsv";
pub const MUTANTS: &str = "tests/mutants/results.tsv";

/// The outcome in the row of a check that never ran.
pub const NEVER: &str = "never-run";
/// The outcome of a check that found that what it needs is not there.
pub const NOT_TESTED: &str = "not-tested";

/// A table of results.
pub struct Results {
    file: PathBuf,
    head: &'static str,
    rows: BTreeMap<String, String>,
}

impl Results {
    /// Reads the table; an absent file is an empty one. `head`: comment lines above the rows.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(file: PathBuf, head: &'static str) -> anyhow::Result<Results> {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| file.display().to_string()),
        };
        let rows = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once('\t'))
            .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
            .collect();
        Ok(Results { file, head, rows })
    }

    /// Gives each check without a row one that says that it never ran, and removes the rows of checks that no longer exist.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn list<'a>(&mut self, names: impl Iterator<Item = &'a str> + Clone) -> anyhow::Result<()> {
        self.rows
            .retain(|row, _| names.clone().any(|name| name == row));
        for name in names {
            if self.outcome(name).is_none() {
                self.set(name, NEVER, 0, "-")?;
            }
        }
        Ok(())
    }

    /// What became of a check at its last run; `None`: it has no row.
    pub fn outcome(&self, name: &str) -> Option<&str> {
        self.rows.get(name)?.split('\t').next()
    }

    /// Whether it passed when it last ran; a seeded bug: it was found.
    pub fn passed(&self, name: &str) -> bool {
        matches!(self.outcome(name), Some("passed" | "killed"))
    }

    /// Whether its last run was of that commit, without changes, and passed.
    pub fn passed_at(&self, name: &str, commit: &str) -> bool {
        let of = self.rows.get(name).and_then(|row| row.split('\t').nth(2));
        self.passed(name) && !commit.ends_with("-dirty") && of == Some(commit)
    }

    /// Orders checks by how stale their results are, the stalest first: never run or tested, not passed, passed; then by date.
    pub fn staleness(&self, name: &str) -> (u8, String) {
        let date = self.rows.get(name).and_then(|row| row.split('\t').nth(3));
        match self.outcome(name) {
            None | Some(NEVER | NOT_TESTED) => (0, String::new()),
            _ if self.passed(name) => (2, date.unwrap_or_default().to_owned()),
            _ => (1, date.unwrap_or_default().to_owned()),
        }
    }

    /// Sets a check's row and writes the table, so that a run that is killed keeps what it has.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set(
        &mut self,
        name: &str,
        outcome: &str,
        seconds: u64,
        commit: &str,
    ) -> anyhow::Result<()> {
        let row = format!("{outcome}\t{seconds}\t{commit}\t{}", today()?);
        self.rows.insert(name.to_owned(), row);
        let mut text = format!("{}\n# name\toutcome\tseconds\tcommit\tdate\n", self.head);
        for (name, row) in &self.rows {
            text += &format!("{name}\t{row}\n");
        }
        fs::write(&self.file, text).with_context(|| self.file.display().to_string())
    }
}

/// The date in UTC, as 2026-11-24.
fn today() -> anyhow::Result<String> {
    let output = Command::new("date").args(["-u", "+%F"]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_kept_replaced_and_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("results.tsv");
        let read = || Results::read(file.clone(), "# head").expect("a table");
        read().set("b", "failed", 3, "c0").expect("written");
        read().set("a", "passed", 1, "c1").expect("written");
        read().set("b", "passed", 2, "c1").expect("written");
        let text = fs::read_to_string(&file).expect("read");
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert!(rows[0].starts_with("a\tpassed\t1\tc1\t20"), "{text}");
        assert!(rows[1].starts_with("b\tpassed\t2\tc1\t20"), "{text}");
        assert_eq!(read().outcome("a"), Some("passed"));
        assert_eq!(read().outcome("c"), None);
        assert!(read().passed_at("a", "c1") && !read().passed_at("a", "c2"));
        let mut results = read();
        results.set("d", "passed", 1, "c1-dirty").expect("written");
        assert!(!results.passed_at("d", "c1-dirty"));
        results.list(["a", "e"].into_iter()).expect("written");
        assert_eq!(read().outcome("d"), None);
        assert_eq!(read().outcome("a"), Some("passed"));
        assert_eq!(read().outcome("e"), Some(NEVER));
    }
}
