// SPDX-License-Identifier: MIT OR Apache-2.0
//! The change to the guest's Linux (`guest-linux/patch`): its size, its licence, the numbers that it shares with `abi/guest/pv_page.h`,
//! and that it applies, where `make linux-guest` has fetched the source.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The change may have so many lines, added and removed ones together.
const MOST_LINES: usize = 500;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn patch() -> String {
    read("guest-linux/patch/unspin.patch")
}

/// Files that the patch changes or makes, as paths in the kernel's source.
fn files(patch: &str) -> BTreeSet<&str> {
    let lines = patch.lines();
    lines
        .filter_map(|line| line.strip_prefix("+++ b/"))
        .collect()
}

#[test]
fn it_is_small_and_says_its_licence() {
    let patch = patch();
    let is_change = |line: &&str| {
        let header = line.starts_with("+++ b/") || line.starts_with("--- a/");
        (line.starts_with('+') || line.starts_with('-')) && !header
    };
    let changed = patch.lines().filter(is_change).count();
    assert!((1..=MOST_LINES).contains(&changed), "{changed} lines");
    assert_eq!(
        patch.lines().next(),
        Some("SPDX-License-Identifier: GPL-2.0-only")
    );
    let new = patch.matches("@@ -0,0 +1").count();
    let licence = |line: &&str| {
        line.starts_with('+') && line.contains("SPDX-License-Identifier: GPL-2.0-only")
    };
    let licensed = patch.lines().filter(licence).count();
    assert!(
        new > 0 && new == licensed,
        "{new} new files, {licensed} with a licence"
    );
}

/// The kernel cannot include abi/guest/pv_page.h: numbers and the order of the fields stand in the patch once more.
#[test]
fn it_has_the_layout_of_the_pv_page() {
    let (patch, pv_page) = (patch(), read("abi/guest/pv_page.h"));
    for (ours, theirs) in [
        (
            "HYPERCALL_REGISTER_PV_PAGE",
            "UNSPIN_HYPERCALL_REGISTER_PV_PAGE",
        ),
        ("HYPERCALL_GIVE_BACK", "UNSPIN_HYPERCALL_GIVE_BACK"),
        ("HYPERCALL_HELP", "UNSPIN_HYPERCALL_HELP"),
        ("PV_PAGE_MAGIC", "UNSPIN_PV_PAGE_MAGIC"),
    ] {
        let number = |text: &str, start: &str| {
            let line = text.lines().find(|line| line.starts_with(start));
            let line = line.unwrap_or_else(|| panic!("no {start:?}"));
            let word = line.split_whitespace().nth(2).expect("a number");
            word.to_owned()
        };
        assert_eq!(
            number(&patch, &format!("+#define {ours}")),
            number(&pv_page, &format!("#define {theirs}")),
            "{ours}"
        );
    }
    let body = |text: &str| {
        let start = text.find("struct unspin_pv_page {").expect("the struct");
        let end = text[start..].find("};").expect("its end") + start;
        text[start..end].to_owned()
    };
    let (patch, pv_page) = (body(&patch), body(&pv_page));
    // Where each field stands among the others is where the host looks for it.
    let order = |text: &str| {
        let code = text
            .split("/*")
            .enumerate()
            .map(|(number, part)| match number {
                0 => part,
                _ => part.split_once("*/").map_or("", |(_, code)| code),
            });
        let code: String = code.collect();
        let word = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let skipped = [
            "",
            "struct",
            "unspin_pv_page",
            "u32",
            "u64",
            "unspin_u32",
            "unspin_u64",
        ];
        code.split(word)
            .filter(|word| !skipped.contains(word) && !word.ends_with("CLASSES"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(order(&patch).len(), 17);
    assert_eq!(order(&patch), order(&pv_page));
}

/// Takes some ten seconds, and only where the source is: it is unpacked as a stream for the files that the patch touches.
#[test]
fn it_applies_to_the_source_that_is_locked() {
    let lock = read("guest-linux/packages.lock");
    let row = lock.lines().find(|line| line.ends_with("\tlinux-source"));
    let file = row
        .and_then(|row| row.split('\t').nth(4))
        .expect("a row of the source");
    let cache = std::env::var_os("UNSPIN_CACHE").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/unspin"),
        PathBuf::from,
    );
    let archive = cache.join("guest-linux/archive").join(file);
    if !archive.exists() {
        eprintln!(
            "not tried: {} is not there (`make linux-guest`)",
            archive.display()
        );
        return;
    }
    let patch = patch();
    let made: BTreeSet<_> = patch
        .split("--- a/")
        .filter(|part| part.contains("@@ -0,0 +1"))
        .filter_map(|part| part.lines().next())
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let touched: Vec<_> = files(&patch)
        .difference(&made)
        .map(|file| format!("*/{file}"))
        .collect();
    let script = "set -eo pipefail; archive=$1; shift
        dpkg-deb --fsys-tarfile \"$archive\" | tar -x -O --wildcards './usr/src/linux-source-*.tar.xz' | xz -dc |
        tar -x --strip-components=1 --wildcards \"$@\"";
    let unpacked = Command::new("bash")
        .args(["-c", script, "unpack"])
        .arg(&archive)
        .args(&touched)
        .current_dir(folder.path())
        .status()
        .expect("bash");
    assert!(unpacked.success(), "the source could not be unpacked");
    let applied = Command::new("patch")
        .args(["-s", "-f", "-p1", "-i"])
        .arg(repository().join("guest-linux/patch/unspin.patch"))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("patch");
    let said = String::from_utf8_lossy(&applied.stdout).into_owned();
    assert!(applied.status.success(), "{said}");
    for file in files(&patch) {
        assert!(folder.path().join(file).exists(), "{file}");
    }
}
