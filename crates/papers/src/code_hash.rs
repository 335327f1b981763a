// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a figure of the lab depends on beside its scenario: the lab, the policies, the locks, and what scenarios mean. A change of comments, of
//! blank lines or of unit tests is none.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use sha2::{Digest, Sha256};

/// Folders whose sources decide what the lab does.
pub const FOLDERS: [&str; 6] = [
    "crates/lab/c",
    "crates/lab/src",
    "crates/policy/src",
    "crates/scenario/src",
    "locks",
    "policy",
];
/// Digits that are kept: 64 bits.
const DIGITS: usize = 16;

/// SHA-256 of these sources, its first digits.
///
/// # Errors
/// A source that cannot be read.
pub(crate) fn code_hash(root: &Path) -> anyhow::Result<String> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        sources(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("{}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file);
        hash.update(name.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update(code(&text).as_bytes());
        hash.update([0]);
    }
    let digits = hash.finalize();
    let digits: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(digits[..DIGITS].to_owned())
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("no folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, into)?;
        } else if path.extension().is_some_and(|extension| {
            ["rs", "c", "h", "S"]
                .iter()
                .any(|known| extension == *known)
        }) {
            into.push(path);
        }
    }
    Ok(())
}

/// The text without lines that are comments, blank lines, indentation, and the tests at the end. A comment behind code counts
/// as code: to tell it apart would take a parser.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut comment = false;
    for line in text.lines().map(str::trim) {
        if comment {
            comment = !line.contains("*/");
            continue;
        }
        if line == "#[cfg(test)]" {
            break;
        }
        if line.starts_with("/*") {
            comment = !line.contains("*/");
            // Code behind a comment stays.
            if let Some((_, rest)) = line.split_once("*/") {
                code.push_str(rest);
            }
            continue;
        }
        if !line.is_empty() && !line.starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_do_not_matter_and_code_does() {
        let plain = "fn f() {\n    1\n}\n";
        let commented = "// why\n\n/* long\n * story */\nfn f() {\n  /// more\n    1\n}\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(code(plain), code(commented));
        assert_ne!(code(plain), code("fn f() {\n    2\n}\n"));
        // A product at the beginning of a line is no comment.
        assert_ne!(code("a\n* b\n"), code("a\n* c\n"));
        assert_eq!(code("/* a */ b\n"), " b");
    }

    #[test]
    fn every_source_below_counts() {
        let tree = tempfile::tempdir().unwrap();
        for folder in FOLDERS {
            fs::create_dir_all(tree.path().join(folder).join("deep")).unwrap();
        }
        let empty = code_hash(tree.path()).unwrap();
        assert_eq!(empty.len(), DIGITS);
        let deep = tree.path().join("locks").join("deep");
        let file = deep.join("a.h");
        fs::write(&file, "int a;\n").unwrap();
        let one = code_hash(tree.path()).unwrap();
        assert_ne!(empty, one);
        fs::write(&file, "/* a */\nint a;\n").unwrap();
        fs::write(tree.path().join("locks/README.md"), "words").unwrap();
        assert_eq!(code_hash(tree.path()).unwrap(), one);
        fs::rename(&file, deep.join("b.h")).unwrap();
        assert_ne!(code_hash(tree.path()).unwrap(), one);
        assert!(code_hash(&tree.path().join("nowhere")).is_err());
    }
}
