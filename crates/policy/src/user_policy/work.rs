// SPDX-License-Identifier: MIT OR Apache-2.0
//! The temporary folder in which a user policy is compiled, and the compilers.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::user_policy::{UserPolicySourceError, sources};

/// A folder with the sources, removed when dropped.
pub(crate) struct Work {
    folder: tempfile::TempDir,
    /// The policy's file as the user named it, and its absolute path.
    typed: PathBuf,
    own: PathBuf,
}

impl Work {
    /// A folder for the policy in this file.
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

    /// The folder's path; the sources are in `unspin` below it.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The absolute path of the policy's file.
    pub(crate) fn own(&self) -> &Path {
        &self.own
    }

    /// A program's output, with the user's files named as the user named them, and unspin's by their path in the tree.
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
        // The chain of inclusions among unspin's own files is left out.
        let ours = |line: &&str| {
            let from = line.trim_start().trim_start_matches("In file included ");
            !from.starts_with("from unspin/")
        };
        text.lines().filter(ours).collect::<Vec<_>>().join("\n")
    }
}

/// A compiler, by several names.
pub(crate) struct Compiler {
    what: &'static str,
    variable: &'static str,
    names: &'static [&'static str],
    advice: &'static str,
}

/// The compiler for BPF.
pub(crate) const CLANG: Compiler = Compiler {
    what: "clang",
    variable: "UNSPIN_CLANG",
    names: &["clang-19", "clang"],
    advice: "`apt-get install clang-19`, or UNSPIN_CLANG names it",
};

/// The compiler for this machine.
pub(crate) const CC: Compiler = Compiler {
    what: "a C compiler with its headers",
    variable: "CC",
    names: &["cc", "gcc", "clang-19", "clang"],
    advice: "`apt-get install gcc libc6-dev`, or CC names one",
};

impl Compiler {
    /// The first that runs: only the one that the environment names if it does, else one of the known names.
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

/// The absolute path.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, UserPolicySourceError> {
    fs::canonicalize(path).map_err(|source| UserPolicySourceError::file(path, source))
}
