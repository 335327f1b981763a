// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of docs/reference say what the binary says of itself. `make docs` writes them anew.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::common::{UNSPIN, unspin};

fn check(page: &str, command: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(page);
    let printed = unspin(command).out;
    if std::env::var_os("UNSPIN_WRITE_REFERENCE").is_some() {
        fs::write(&path, &printed).expect("the page can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == printed,
        "docs/reference/{page} is not what `unspin {}` prints: run make docs",
        command.join(" ")
    );
}

#[test]
fn commands() {
    check("commands.md", &["help", "--markdown"]);
}

#[test]
fn scenario() {
    check("scenario.md", &["scenario", "schema", "--markdown"]);
}

#[test]
fn man_pages_completions_and_help_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let man = folder.path().join("man");
    let ended = unspin(&["help", "--man", &man.to_string_lossy()]);
    assert_eq!((ended.status, ended.out.as_str()), (0, ""), "{ended:#?}");
    let page = fs::read_to_string(man.join("unspin-lab-compare.1")).expect("a page");
    assert!(page.contains(".TH") && page.contains("policy"), "{page}");
    for (shell, piece) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef unspin"),
        ("fish", "complete -c unspin"),
    ] {
        assert!(
            unspin(&["completions", shell]).out.contains(piece),
            "{shell}"
        );
    }
    unspin(&["completions", "tcsh"]).refused(2, &["tcsh"]);
    unspin(&["help", "lab", "sing"]).refused(2, &["no command `sing`", "compare"]);
    assert!(unspin(&["help", "lab", "compare"]).out.contains("--seeds"));
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    for command in [
        &["policy", "list"][..],
        &["help", "--markdown"],
        &["scenario", "schema"],
    ] {
        let mut child = Command::new(UNSPIN)
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
        assert!(
            [Some(0), Some(141)].contains(&output.status.code()),
            "{command:?}"
        );
    }
}
