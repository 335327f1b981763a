// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the commit that is built, so that every table can say where its numbers come from.
use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=UNSPIN_COMMIT");
    let commit = env::var("UNSPIN_COMMIT").unwrap_or_else(|_| commit());
    println!("cargo:rustc-env=UNSPIN_COMMIT={commit}");
}

/// Twelve digits of HEAD, `-dirty` when tracked files differ from it, "unknown" outside git.
fn commit() -> String {
    let Some(folder) = git(&["rev-parse", "--absolute-git-dir"]) else {
        return "unknown".into();
    };
    for name in ["HEAD", "index", "logs/HEAD"] {
        let path = Path::new(&folder).join(name);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".into();
    };
    let clean = Command::new("git")
        .args(["diff", "--quiet", "HEAD"])
        .status()
        .is_ok_and(|status| status.success());
    if clean { head } else { format!("{head}-dirty") }
}

/// What git prints, trimmed; `None` when it fails or is not there.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then_some(())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
