// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask references`: whatever the tree cites exists. Rulings and claims of the papers, files and folders named in
//! comments and documents, links between documents and their anchors.

mod citations;
mod markdown;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, bail};

use citations::Citation;

/// Where rulings have their anchors, `ruling-N`.
const DECISIONS: &str = "docs/decisions";
/// Where claims stand: in a file for each paper, an `id` each.
const CLAIMS: &str = "papers";
/// Files whose text is not written by hand, is history, or (tests of these) cites on purpose what is not there.
const NOT_READ: [&str; 5] = [
    "CHANGELOG.md",
    "Cargo.lock",
    "LICENSE",
    "crates/xtask/src/house",
    "crates/xtask/src/references",
];
/// What looks like a place of the tree and is none: folders of the cache, a unit, a header that the binary carries.
const ELSEWHERE: [&str; 4] = [
    "guest-linux/current",
    "guest-linux/archive",
    "locks/s",
    "policy/user_test.h",
];

/// Checks every file that git tracks, and new ones; prints what does not resolve, a line each.
///
/// # Errors
/// When something does not resolve, or a file cannot be read.
pub fn check(root: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    let tree = Tree::read(root, files)?;
    let mut broken = Vec::new();
    for (path, text) in &tree.texts {
        broken.extend(tree.unresolved(path, text));
    }
    for line in &broken {
        eprintln!("{line}");
    }
    if broken.is_empty() {
        return Ok(());
    }
    bail!("{} citations lead nowhere", broken.len());
}

/// What can be cited.
struct Tree {
    /// Files and folders, relative to the top.
    places: BTreeSet<PathBuf>,
    /// Files that are text, by path.
    texts: BTreeMap<PathBuf, String>,
    /// Anchors of each document.
    anchors: BTreeMap<PathBuf, BTreeSet<String>>,
    rulings: BTreeSet<u32>,
    claims: BTreeSet<String>,
}

impl Tree {
    fn read(root: &Path, files: &[PathBuf]) -> anyhow::Result<Self> {
        let mut texts = BTreeMap::new();
        for file in files {
            let bytes =
                fs::read(root.join(file)).with_context(|| format!("cannot read {file:?}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                texts.insert(file.clone(), text);
            }
        }
        let places = files
            .iter()
            .flat_map(|file| file.ancestors().map(Path::to_path_buf))
            .collect();
        let anchors: BTreeMap<_, _> = texts
            .iter()
            .filter(|(path, _)| is_markdown(path))
            .map(|(path, text)| (path.clone(), markdown::anchors(text)))
            .collect();
        let rulings = anchors
            .iter()
            .filter(|(path, _)| path.starts_with(DECISIONS))
            .flat_map(|(_, anchors)| anchors)
            .filter_map(|anchor| anchor.strip_prefix("ruling-")?.parse().ok())
            .collect();
        let claims = texts
            .iter()
            .filter(|(path, _)| path.parent() == Some(Path::new(CLAIMS)))
            .flat_map(|(_, text)| text.lines())
            .filter_map(|line| Some(line.strip_prefix("id = \"")?.strip_suffix('"')?.to_owned()))
            .collect();
        Ok(Self {
            places,
            texts,
            anchors,
            rulings,
            claims,
        })
    }

    /// What `text`, the file at `path`, cites and is not there: a line for each.
    fn unresolved(&self, path: &Path, text: &str) -> Vec<String> {
        let name = path.to_string_lossy();
        if NOT_READ.iter().any(|left_out| name.starts_with(left_out)) {
            return Vec::new();
        }
        let mut broken = Vec::new();
        let mut report = |line: usize, what: &str| {
            broken.push(format!("{name}:{line}: {what}"));
        };
        for (line, citation) in citations::find(text) {
            match citation {
                Citation::Ruling(number) if !self.rulings.contains(&number) => {
                    report(line, &format!("no ruling {number} in {DECISIONS}"));
                }
                Citation::Claim(claim) if !self.claims.contains(&claim) => {
                    report(line, &format!("no claim {claim} in {CLAIMS}"));
                }
                Citation::Place(place) if !elsewhere(&place) && !self.has_place(path, &place) => {
                    report(line, &format!("no file or folder {place}"));
                }
                Citation::Anchor(file, anchor)
                    if !self
                        .anchors
                        .get(Path::new(&file))
                        .is_some_and(|all| all.contains(&anchor)) =>
                {
                    report(line, &format!("no anchor #{anchor} in {file}"));
                }
                _ => {}
            }
        }
        if is_markdown(path) {
            for (line, target) in markdown::links(text) {
                if let Err(why) = self.resolve(path, &target) {
                    report(line, &why);
                }
            }
        }
        broken
    }

    /// Whether `place` is one of the tree, seen from its top or from a folder above the file that names it.
    fn has_place(&self, from: &Path, place: &str) -> bool {
        from.ancestors()
            .skip(1)
            .any(|folder| self.places.contains(&folder.join(place)))
    }

    /// Whether a link of the document `from` leads to a file of the tree, and its anchor to one of that document.
    fn resolve(&self, from: &Path, target: &str) -> Result<(), String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return Ok(());
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let place = if file.is_empty() {
            from.to_path_buf()
        } else {
            normal(&from.with_file_name("").join(file))
        };
        if !self.places.contains(&place) {
            return Err(format!("the link {target} leads to no file"));
        }
        match self.anchors.get(&place) {
            Some(anchors) if !anchor.is_empty() && !anchors.contains(anchor) => Err(format!(
                "{} has no anchor #{anchor}",
                place.to_string_lossy()
            )),
            _ => Ok(()),
        }
    }
}

fn elsewhere(place: &str) -> bool {
    let place = Path::new(place);
    ELSEWHERE.iter().any(|outside| place.starts_with(outside))
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(extra: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let mut files = vec![
            (
                "docs/decisions/ecs.md",
                "<a id=\"ruling-22\"></a>\n## A title, of two\n",
            ),
            ("papers/vee13.toml", "[[claim]]\nid = \"O05\"\n"),
            ("policy/contract.h", "/* no more */\n"),
        ];
        files.extend(extra);
        for (name, text) in &files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let names = files.iter().map(|(name, _)| PathBuf::from(name)).collect();
        (folder, names)
    }

    fn broken(name: &str, text: &str) -> Vec<String> {
        let (folder, files) = tree(&[(name, text)]);
        let tree = Tree::read(folder.path(), &files).unwrap();
        tree.unresolved(Path::new(name), text)
    }

    #[test]
    fn what_is_there_resolves() {
        let good = "[a](docs/decisions/ecs.md#ruling-22) [b](docs/decisions/ecs.md#a-title-of-two)\n\
            [c](https://nowhere) Ruling 22, claim O05, `policy/contract.h`, policy/.\n";
        assert_eq!(broken("README.md", good), [] as [&str; 0]);
        assert_eq!(
            broken("policy/steering/loan.h", "/* contract.h */"),
            [] as [&str; 0]
        );
    }

    #[test]
    fn a_ruling_that_nobody_made_is_told_with_its_line() {
        assert_eq!(
            broken("policy/loan.h", "/*\n * ruling 22, rulings 21 and 22 */"),
            ["policy/loan.h:2: no ruling 21 in docs/decisions"]
        );
    }

    #[test]
    fn claims_files_links_and_anchors_that_are_not_there_are_told() {
        assert_eq!(
            broken("policy/loan.h", "/* claim O77, policy/contact.h */"),
            [
                "policy/loan.h:1: no claim O77 in papers",
                "policy/loan.h:1: no file or folder policy/contact.h"
            ]
        );
        assert_eq!(
            broken(
                "docs/a.md",
                "\n[b](decisions/ecs.md#ruling-23) [c](gone.md)"
            ),
            [
                "docs/a.md:2: docs/decisions/ecs.md has no anchor #ruling-23",
                "docs/a.md:2: the link gone.md leads to no file"
            ]
        );
    }

    #[test]
    fn anchors_named_in_code_are_looked_for() {
        assert_eq!(
            broken("a.c", "/* docs/decisions/ecs.md#ruling-22 */"),
            [] as [&str; 0]
        );
        assert_eq!(
            broken("a.c", "/* docs/decisions/ecs.md#gone */"),
            ["a.c:1: no anchor #gone in docs/decisions/ecs.md"]
        );
    }

    #[test]
    fn a_broken_citation_fails_the_check() {
        let (folder, files) = tree(&[("a.md", "ruling 99")]);
        assert!(check(folder.path(), &files).is_err());
        let (folder, files) = tree(&[]);
        check(folder.path(), &files).unwrap();
    }
}
