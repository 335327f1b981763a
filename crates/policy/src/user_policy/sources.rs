// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C sources that a user policy is compiled with: those from which this binary was built.

use std::{fs, io, path::Path};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Whether some embedded source defines a function with this prefix, such as `loan_on_`.
pub(crate) fn is_taken(name: &str) -> bool {
    let begins = format!("{name}_on_");
    let word = |text: &str| {
        text.match_indices(&begins).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            !before.is_some_and(|character| character.is_alphanumeric() || character == '_')
        })
    };
    let policies = FILES.iter().filter(|(path, _)| path.starts_with("policy/"));
    policies.into_iter().any(|(_, text)| word(text))
}

/// Writes them to `folder`/unspin, so that with `-I folder` the contract is `<unspin/policy/contract.h>`.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn unpack(folder: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        let path = folder.join("unspin").join(path);
        fs::create_dir_all(path.parent().expect("below the folder"))?;
        fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_our_policies_are_taken() {
        for name in ["loan", "loan_cpl", "policies", "user", "refuse_yields"] {
            assert!(is_taken(name), "{name}");
        }
        for name in ["cpl", "mine", "oan"] {
            assert!(!is_taken(name), "{name}");
        }
    }

    #[test]
    fn all_that_is_needed_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        unpack(folder.path()).expect("it is writable");
        for name in [
            "policy/steering/policies.h",
            "policy/contract.h",
            "policy/user_test.h",
            "abi/types.h",
            "bpf/scheduler/main.bpf.c",
            "bpf/scheduler/user_policy.bpf.c",
        ] {
            assert!(folder.path().join("unspin").join(name).is_file(), "{name}");
        }
        assert_eq!(SOURCES_HASH.len(), 16);
    }
}
