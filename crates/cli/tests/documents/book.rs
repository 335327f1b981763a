// SPDX-License-Identifier: MIT OR Apache-2.0
//! What README and the pages of docs/ show is what the commands print: every block that begins with three backticks and
//! `console` is run and compared, line by line. The blocks of a page are one session, in a folder of its own in which
//! `scenarios` is the tree's. A line `…` stands for any lines, a `…` at a line's end for the rest of it; the line that names
//! machine and commit is left out. Only commands that need nothing but this binary. UNSPIN_WRITE_REFERENCE=1 writes anew
//! what the blocks without any `…` show.

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

/// The commands of a block, each with what the page shows of it.
type Session<'p> = Vec<(&'p str, Vec<&'p str>)>;

/// Each block: its whole text, and its commands.
fn blocks(page: &str) -> Vec<(&str, Session<'_>)> {
    let texts = page.split("```console\n").skip(1);
    texts
        .map(|text| {
            let text = text.split("\n```").next().unwrap_or_default();
            let mut commands = Session::new();
            for line in text.lines() {
                match (line.strip_prefix("$ "), commands.last_mut()) {
                    (Some(command), _) => commands.push((command, Vec::new())),
                    (None, Some((_, shown))) => shown.push(line.trim_end()),
                    (None, None) => panic!("no command: {text}"),
                }
            }
            (text, commands)
        })
        .collect()
}

/// What a command prints in a folder, without empty lines around it and without machine and commit.
fn printed(command: &str, folder: &Path) -> Vec<String> {
    let bin = Path::new(UNSPIN).parent().expect("a folder").display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let ended = ended(
        Command::new("bash")
            .args(["-c", command])
            .current_dir(folder)
            .env("PATH", path),
    );
    assert_eq!(ended.status, 0, "{command}\n{}", ended.err);
    let lines: Vec<String> = ended
        .out
        .lines()
        .map(|line| line.trim_end().to_owned())
        .filter(|line| !line.contains("(unspin "))
        .collect();
    let text = lines.join("\n");
    text.trim_matches('\n').lines().map(str::to_owned).collect()
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
    let write = std::env::var_os("UNSPIN_WRITE_REFERENCE").is_some();
    let mut run = 0;
    for path in pages() {
        let folder = tempfile::tempdir().expect("a folder");
        let scenarios = root().join("scenarios").canonicalize().expect("scenarios");
        std::os::unix::fs::symlink(scenarios, folder.path().join("scenarios")).expect("a link");
        let page = fs::read_to_string(&path).expect("a page");
        let mut written = page.clone();
        for (text, commands) in blocks(&page) {
            let mut anew = Vec::new();
            for (command, shown) in commands {
                let printed = printed(command, folder.path());
                let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
                anew.push(format!("$ {command}"));
                anew.extend(printed.iter().map(|line| (*line).to_owned()));
                assert!(
                    matches(&shown, &printed) || write && !text.contains('…'),
                    "{}: {command}\nprints\n{}",
                    path.display(),
                    printed.join("\n")
                );
                run += 1;
            }
            if write && !text.contains('…') {
                written = written.replacen(text, &anew.join("\n"), 1);
            }
        }
        if written != page {
            fs::write(&path, &written).expect("the page can be written");
        }
    }
    assert!(run >= 12, "only {run} commands were found");
}

#[test]
fn what_differs_is_seen() {
    assert!(matches(&["a", "…", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["a…"], &["ab"]));
    assert!(!matches(&["a", "…", "d"], &["a", "b"]));
    assert!(!matches(&["a"], &["b"]));
    assert!(!matches(&[], &["a"]));
}
