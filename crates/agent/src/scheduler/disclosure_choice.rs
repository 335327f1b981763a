// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much guests are told, in words: a level, for everyone or for one VM.

use std::{fmt, path::PathBuf, str::FromStr};

use super::disclosure::Disclosure;

/// `own`, `all=1234` or `nothing=/sys/fs/cgroup/machine.slice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureChoice {
    /// How much.
    pub level: Disclosure,
    /// Whom.
    pub whom: Whom,
}

/// Whom it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All that nothing else is said of.
    Everyone,
    /// The VMs of one process.
    Process(u32),
    /// Those in a cgroup, by its folder, and below.
    Cgroup(PathBuf),
}

impl FromStr for DisclosureChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<DisclosureChoice, String> {
        let (level, whom) = match text.split_once('=') {
            None => (text, Whom::Everyone),
            Some((level, folder)) if folder.starts_with('/') => {
                (level, Whom::Cgroup(folder.into()))
            }
            Some((level, process)) => {
                let process = process.parse().map_err(|_| {
                    format!("`{process}`: a process's number, or a cgroup's folder from /")
                })?;
                (level, Whom::Process(process))
            }
        };
        let level = level.parse()?;
        Ok(DisclosureChoice { level, whom })
    }
}

impl fmt::Display for DisclosureChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.whom {
            Whom::Everyone => write!(out, "{}", self.level),
            Whom::Process(process) => write!(out, "{}={process}", self.level),
            Whom::Cgroup(folder) => write!(out, "{}={}", self.level, folder.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_and_whom() {
        for text in ["own", "all=17", "nothing=/sys/fs/cgroup/a=b"] {
            let choice: DisclosureChoice = text.parse().expect("a choice");
            assert_eq!(choice.to_string(), text);
        }
        for wrong in [
            "",
            "everything",
            "all=",
            "all=x",
            "=17",
            "all=-1",
            "all=a/b",
        ] {
            assert!(wrong.parse::<DisclosureChoice>().is_err(), "{wrong}");
        }
    }
}
