// SPDX-License-Identifier: MIT OR Apache-2.0
//! What README and the pages of docs/ show is what the commands print: every block that begins with three backticks and
//! `console` is run from the top of the tree and compared, line by line. A line `…` stands for any lines, a `…` at a line's end
//! for the rest of it; the line that names machine and commit is left out. Only commands that need nothing but this binary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{UNSPIN, ended};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and the pages of docs/.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).expect("docs/ is there");
    let pages = docs.map(|entry| entry.expect("an entry").path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    [root().join("README.md")]
        .into_iter()
        .chain(pages)
        .collect()
}

/// Command and what it printed, of each block.
fn blocks(page: &str) -> Vec<(&str, Vec<&str>)> {
    let texts = page.split("```console\n").skip(1);
    texts
        .map(|text| {
            let text = text.split("\n```").next().unwrap_or_default();
            let mut lines = text.lines();
            let command = lines.next().and_then(|line| line.strip_prefix("$ "));
            let command = command.unwrap_or_else(|| panic!("no command: {text}"));
            (command, lines.map(str::trim_end).collect())
        })
        .collect()
}

/// Whether `printed` is what the page shows.
fn matches(shown: &[&str], printed: &[&str]) -> bool {
    match shown {
        [] => printed.is_empty(),
        ["…", rest @ ..] => (0..=printed.len()).any(|from| matches(rest, &printed[from..])),
        [line, rest @ ..] => {
            let same = |first: &&str| match line.strip_suffix('…') {
                Some(begin) => first.starts_with(begin),
                None => first == line,
            };
            printed.first().is_some_and(same) && matches(rest, &printed[1..])
        }
    }
}

#[test]
fn pages_show_what_commands_print() {
    let mut run = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        for (command, shown) in blocks(&page) {
            let folder = Path::new(UNSPIN)
                .parent()
                .expect("a folder")
                .display()
                .to_string();
            let path_variable = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
            let ended = ended(
                Command::new("bash")
                    .args(["-c", command])
                    .current_dir(root())
                    .env("PATH", path_variable),
            );
            assert_eq!(ended.status, 0, "{command}\n{}", ended.err);
            let printed: Vec<&str> = ended
                .out
                .lines()
                .map(str::trim_end)
                .filter(|line| !line.contains("(unspin "))
                .collect();
            let end = printed
                .iter()
                .rposition(|line| !line.is_empty())
                .map_or(0, |last| last + 1);
            let begin = printed
                .iter()
                .position(|line| !line.is_empty())
                .unwrap_or(0);
            assert!(
                matches(&shown, &printed[begin..end]),
                "{}: {command}\nprints\n{}",
                path.display(),
                printed.join("\n")
            );
            run += 1;
        }
    }
    assert!(run >= 3, "only {run} blocks were found");
}

#[test]
fn what_differs_is_seen() {
    assert!(matches(&["a", "…", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["a…"], &["ab"]));
    assert!(!matches(&["a", "…", "d"], &["a", "b"]));
    assert!(!matches(&["a"], &["b"]));
    assert!(!matches(&[], &["a"]));
}
