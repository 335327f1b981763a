// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a user policy is compiled, and by what.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::user_policy::{UserPolicySourceError, sources};

/// A folder with the sources, gone when dropped.
pub(crate) struct Work {
    folder: tempfile::TempDir,
    /// The policy's file as the user named it, and from the root.
    typed: PathBuf,
    own: PathBuf,
}

impl Work {
    /// For the policy in that file.
    pub(crate) fn new(policy: &Path) -> Result<Work, UserPolicySourceError> {
        let own = absolute(policy)?;
        let odd = |character: char| "\"\\\n\r".contains(character);
        if own.to_str().is_none_or(|path| path.contains(odd)) {
            return Err(UserPolicySourceError::Path(policy.to_owned()));
        }
        let folder = tempfile::Builder::new()
            .prefix("unspin-policy-")
            .tempdir()?;
        sources::unpack(folder.path())?;
        Ok(Work {
            folder,
            typed: policy.to_owned(),
            own,
        })
    }

    /// Where everything stands; the sources in `unspin` below.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The policy's file, from the root.
    pub(crate) fn own(&self) -> &Path {
        &self.own
    }

    /// What a program wrote, with the user's files named as he did, and ours by their place in the tree.
    pub(crate) fn readable(&self, output: &Output) -> String {
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        let text = String::from_utf8_lossy(&text);
        let (typed, own) = (self.typed.parent(), self.own.parent());
        let folder = |path: &Path| format!("{}/", path.display());
        let mut text = text.replace(&folder(&self.folder.path().join("unspin")), "unspin/");
        if let (Some(typed), Some(own)) = (typed, own) {
            let typed = match typed.as_os_str().is_empty() {
                true => String::new(),
                false => folder(typed),
            };
            text = text.replace(&folder(own), &typed);
        }
        // How our own files include one another is of no interest.
        let ours = |line: &&str| {
            let from = line.trim_start().trim_start_matches("In file included ");
            !from.starts_with("from unspin/")
        };
        text.lines().filter(ours).collect::<Vec<_>>().join("\n")
    }
}

/// A compiler under several names.
pub(crate) struct Compiler {
    what: &'static str,
    variable: &'static str,
    names: &'static [&'static str],
    advice: &'static str,
}

/// For BPF.
pub(crate) const CLANG: Compiler = Compiler {
    what: "clang",
    variable: "UNSPIN_CLANG",
    names: &["clang-19", "clang"],
    advice: "`apt-get install clang-19`, or UNSPIN_CLANG names it",
};

/// For this machine.
pub(crate) const CC: Compiler = Compiler {
    what: "a C compiler with its headers",
    variable: "CC",
    names: &["cc", "gcc", "clang-19", "clang"],
    advice: "`apt-get install gcc libc6-dev`, or CC names one",
};

impl Compiler {
    /// The first that runs: the one that the environment names alone, or else one of ours.
    pub(crate) fn command(&self, what: &'static str) -> Result<Command, UserPolicySourceError> {
        let tried: Vec<String> = match env::var(self.variable) {
            Ok(name) if !name.is_empty() => vec![name],
            _ => self.names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let runs = |name: &&String| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        };
        let found = tried.iter().find(runs).map(Command::new);
        found.ok_or(UserPolicySourceError::NoCompiler {
            what,
            compiler: self.what,
            tried,
            advice: self.advice,
        })
    }
}

/// The path from the root.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, UserPolicySourceError> {
    fs::canonicalize(path).map_err(|source| UserPolicySourceError::file(path, source))
}
