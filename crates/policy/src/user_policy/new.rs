// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first version of a user policy, and its test.

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

use crate::user_policy::{UserPolicySourceError, check_name};

const POLICY: &str = include_str!("../../native/new_policy.c");
const TEST: &str = include_str!("../../native/new_policy_test.c");

/// Writes NAME.c and NAME_test.c into `folder`; gives both paths.
///
/// # Errors
/// When no policy can be called so, or one of the files is there already (then neither is written) or cannot be written.
pub fn write_new_policy(folder: &Path, name: &str) -> Result<[PathBuf; 2], UserPolicySourceError> {
    check_name(name)?;
    let paths = ["", "_test"].map(|end| folder.join(format!("{name}{end}.c")));
    // Both are opened before one is written.
    let mut made: Vec<&Path> = Vec::new();
    for path in &paths {
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(_) => made.push(path),
            Err(source) => {
                // Empty files of ours; if one stays, the next try names it.
                made.iter()
                    .for_each(|path| drop(std::fs::remove_file(path)));
                return Err(UserPolicySourceError::file(path, source));
            }
        }
    }
    for (path, text) in paths.iter().zip([POLICY, TEST]) {
        let written = OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.replace("NAME", name).as_bytes()));
        written.map_err(|source| UserPolicySourceError::file(path, source))?;
    }
    Ok(paths)
}
