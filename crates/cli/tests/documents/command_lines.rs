// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every command line of ours that README, CONTRIBUTING, a page of docs/ or a measurement of benchmarks/ shows names options
//! that the command has.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::common::unspin;

/// Options by command, as `unspin help --markdown` says them; hidden commands are not in it.
fn options() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    let mut command = String::new();
    for line in unspin(&["help", "--markdown"]).out.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            command = name.to_owned();
            let common = ["--help", "--version"].map(str::to_owned);
            all.insert(command.clone(), BTreeSet::from(common));
        } else if let Some(option) = line.strip_prefix("- `--") {
            let name = option.split([' ', '`']).next().unwrap_or_default();
            let of_command: &mut BTreeSet<String> = all.entry(command.clone()).or_default();
            of_command.insert(format!("--{name}"));
        }
    }
    all
}

/// Those files, in the order of their names.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "benchmarks"] {
        for entry in fs::read_dir(root.join(folder)).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => files.push(path.join("benchmark.toml")),
                false => files.push(path),
            }
        }
    }
    files.retain(|path| {
        let extension = path.extension().unwrap_or_default();
        path.is_file() && (extension == "md" || extension == "toml")
    });
    files.sort();
    files
}

/// What is wrong with the command lines of a text: command and option.
fn wrong(text: &str, options: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let mut wrong = Vec::new();
    let lines = text.split(['\n', '`', '"']);
    for line in lines.flat_map(|line| line.split("unspin ").skip(1)) {
        // What follows ` -- ` is another command's.
        let line = line.split(" -- ").next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = |count: usize| format!("unspin {}", words[..count.min(words.len())].join(" "));
        let Some((command, known)) = (1..=3)
            .rev()
            .find_map(|count| options.get_key_value(&name(count)))
        else {
            continue;
        };
        let given = words
            .iter()
            .filter(|word| word.len() > 2 && word.starts_with("--"));
        let given = given.map(|word| word.split(['=', '.', ',', ')', ':']).next().unwrap_or(word));
        wrong.extend(
            given
                .filter(|option| !known.contains(*option))
                .map(|option| format!("{command} has no {option}")),
        );
    }
    wrong
}

#[test]
fn options_exist() {
    let options = options();
    assert!(options.len() > 30, "{options:?}");
    let mut all = Vec::new();
    for path in files() {
        let text = fs::read_to_string(&path).expect("a text");
        // A group without a command in it is a hidden one's.
        let wrong = wrong(&text, &options);
        all.extend(
            wrong
                .into_iter()
                .filter(|wrong| !wrong.starts_with("unspin bench has")),
        );
    }
    assert_eq!(all, [] as [&str; 0]);
}

#[test]
fn an_option_that_is_none_is_seen() {
    let options = options();
    let text = "`unspin compare s.toml --sample 1s \\\n --windows 1s -- --x`";
    assert_eq!(wrong(text, &options), ["unspin compare has no --windows"]);
    assert_eq!(wrong("unspin lab run --trace x", &options), [] as [&str; 0]);
}
