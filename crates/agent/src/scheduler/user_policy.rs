// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler, or the dry run, with a user policy compiled into it.

use std::{path::Path, sync::Arc};

use libbpf_rs::{ObjectBuilder, OpenObject, libbpf_sys};
use unspin_abi as abi;
use unspin_policy::{
    steering::UNSPIN_POLICY_CONTRACT,
    user_policy::{SOURCES_HASH, UserPolicySource, UserPolicySourceError},
};

use crate::{
    Error,
    kernel::{
        bytes::{self, text},
        load,
    },
};

/// Where an object says what it is: `struct unspin_user_policy`.
pub(super) const ABOUT: &str = ".rodata.user";

/// Why an object with a user policy was not taken.
#[derive(Debug, thiserror::Error)]
pub enum UserPolicyError {
    /// It could not be compiled.
    #[error(transparent)]
    Source(#[from] UserPolicySourceError),
    /// The object's file cannot be read.
    #[error("reading {path}: {source}")]
    Read {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{0} is no policy that `unspin policy build` has made")]
    NoPolicy(String),
    /// It was made by another unspin, whose scheduler or contract may be another.
    #[error(
        "{path} was built by another version of unspin (contract {contract}, sources {sources}; this one: contract {}, sources {}): build it again with `unspin policy build`",
        UNSPIN_POLICY_CONTRACT,
        SOURCES_HASH
    )]
    OtherVersion {
        /// The object's file.
        path: String,
        /// Its contract's version.
        contract: u32,
        /// The hash of its sources.
        sources: String,
    },
    /// It was made for the other use.
    #[error("{path} was built {}", if *.for_dry_run {
        "for a dry run: build it without --dry-run to steer by it"
    } else {
        "to steer by: build it with --dry-run for a dry run"
    })]
    OtherUse {
        /// The object's file.
        path: String,
        /// What it was made for.
        for_dry_run: bool,
    },
}

/// A user policy, ready to be loaded.
#[derive(Clone, PartialEq, Eq)]
pub struct UserPolicy {
    name: String,
    dry_run: bool,
    object: Arc<[u8]>,
}

impl std::fmt::Debug for UserPolicy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "UserPolicy({})", self.name)
    }
}

impl UserPolicy {
    /// Compiles a policy's C file into the scheduler, or into what a dry run loads.
    ///
    /// # Errors
    /// When the file is not there, there is no clang, or it does not compile.
    pub fn compile(path: &Path, dry_run: bool) -> Result<UserPolicy, UserPolicyError> {
        let source = UserPolicySource::at(path)?;
        let object = source.compile_bpf(dry_run, &libbpf_sys::API_HEADERS)?;
        UserPolicy::from_object(path, object, dry_run)
    }

    /// From a C file (`.c`), which is compiled, or from an object.
    ///
    /// # Errors
    /// As [`UserPolicy::compile`] and [`UserPolicy::from_object`]; when the object cannot be read.
    pub fn load(path: &Path, dry_run: bool) -> Result<UserPolicy, UserPolicyError> {
        if path.extension().is_some_and(|end| end == "c") {
            return UserPolicy::compile(path, dry_run);
        }
        let object = std::fs::read(path).map_err(|source| UserPolicyError::Read {
            path: path.display().to_string(),
            source,
        })?;
        UserPolicy::from_object(path, object, dry_run)
    }

    /// Takes what [`UserPolicy::object`] gave, perhaps on another machine. `path` is for errors.
    ///
    /// # Errors
    /// When it is no such object, of another version, or was made for the other use.
    pub fn from_object(
        path: &Path,
        object: Vec<u8>,
        dry_run: bool,
    ) -> Result<UserPolicy, UserPolicyError> {
        let path = path.display().to_string();
        let Some(about) = about(&object) else {
            return Err(UserPolicyError::NoPolicy(path));
        };
        let sources = text(&about.sources);
        if about.contract != UNSPIN_POLICY_CONTRACT || sources != SOURCES_HASH {
            return Err(UserPolicyError::OtherVersion {
                path,
                contract: about.contract,
                sources,
            });
        }
        let for_dry_run = about.dry_run != 0;
        if for_dry_run != dry_run {
            return Err(UserPolicyError::OtherUse { path, for_dry_run });
        }
        Ok(UserPolicy {
            name: text(&about.name),
            dry_run,
            object: object.into(),
        })
    }

    /// What its functions' names begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object file.
    pub fn object(&self) -> &[u8] {
        &self.object
    }
}

/// What is being loaded, in words for an error.
pub(super) fn loading(what: &str, own: Option<&UserPolicy>) -> String {
    match own {
        None => format!("loading {what}"),
        Some(own) => format!("loading {what} with the policy {}", own.name),
    }
}

/// The object to load: the user's, or the embedded one.
pub(super) fn open(
    own: Option<&UserPolicy>,
    embedded: &[u8],
    name: &str,
) -> Result<OpenObject, Error> {
    let bytes = own.map_or(embedded, UserPolicy::object);
    ObjectBuilder::default()
        .name(name)
        .and_then(|builder| builder.open_memory(bytes))
        .map_err(|source| load::refused("reading the BPF object", source))
}

/// What the object says of itself; nothing in it is loaded.
fn about(object: &[u8]) -> Option<abi::unspin_user_policy> {
    let opened = load::with_log(|| {
        ObjectBuilder::default()
            .open_memory(object)
            .map_err(|source| load::refused("reading a policy's object", source))
    });
    let opened = opened.ok()?;
    let map = opened.maps().find(|map| map.name() == ABOUT)?;
    bytes::read("user_policy", map.initial_value()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_else_is_no_policy() {
        let path = Path::new("p.bpf.o");
        for object in [&b"text"[..], b"", super::super::object::OBJECT] {
            let error = UserPolicy::from_object(path, object.to_vec(), false).expect_err("none");
            assert!(
                error.to_string().starts_with("p.bpf.o is no policy"),
                "{error}"
            );
        }
    }
}
