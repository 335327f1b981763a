// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is installed, what it exports and needs, and that all of it goes away again.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::tree::{Installed, root, run, succeed};

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(root().join("lib/include/unspin/locks.h")).expect("the header");
    let of = |macro_name: &str, operations: &[&str]| -> Vec<String> {
        let calls = header.lines().filter_map(|line| {
            let rest = line.strip_prefix(macro_name)?.strip_prefix('(')?;
            Some(rest.split([',', ')']).next()?.to_owned())
        });
        calls
            .flat_map(|lock| {
                operations
                    .iter()
                    .map(move |operation| format!("unspin_{lock}_{operation}"))
            })
            .collect()
    };
    let mut names = BTreeSet::from(["unspin_version".to_owned()]);
    let common = ["init", "lock", "trylock", "unlock", "is_locked"];
    names.extend(of("UNSPIN_DECLARE_LOCK", &common));
    let readers = ["read_lock", "read_trylock", "read_unlock"];
    names.extend(of("UNSPIN_DECLARE_READERS", &readers));
    assert_eq!(names.len(), 13 * 5 + 2 * 3 + 1, "{names:?}");
    names
}

/// Files and links below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() && !path.is_symlink() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

fn exports_what_the_header_declares(library: &Path) {
    let symbols = succeed(
        Command::new("nm")
            .args(["-D", "--defined-only", "--with-symbol-versions"])
            .arg(library),
    );
    let exported: BTreeSet<String> = symbols
        .lines()
        .filter_map(|line| {
            let name = line.split_whitespace().nth(2)?;
            // The version's own symbol is absolute.
            let name = name.strip_suffix("@@UNSPIN_0.1");
            name.map(str::to_owned)
        })
        .collect();
    assert_eq!(exported, declared());
    assert_eq!(
        symbols.lines().count(),
        exported.len() + 1,
        "nothing without a version:\n{symbols}"
    );
}

fn needs_libc_alone(library: &Path) {
    let dynamic = succeed(Command::new("readelf").args(["-d", "--wide"]).arg(library));
    let needed: Vec<&str> = dynamic
        .lines()
        .filter_map(|line| line.split_once("Shared library: [")?.1.strip_suffix(']'))
        .collect();
    // With ld's --as-needed, which is the default of some compilers, or without it.
    let libc = ["libc.so.6", "ld-linux-x86-64.so.2"];
    assert!(needed.iter().all(|name| libc.contains(name)), "{needed:?}");
    assert!(dynamic.contains("[libunspin.so.0]"), "{dynamic}");
}

/// Locks that need no number and do not sleep are for programs without libc, too.
fn four_locks_reference_nothing(built: &Path) {
    for name in [
        "test_and_test_and_set",
        "ticket",
        "preemptable_ticket",
        "rwlock",
    ] {
        let object = built.join("objects").join(name).with_extension("o");
        let undefined = succeed(Command::new("nm").arg("-u").arg(object));
        assert_eq!(undefined.trim(), "", "{name}");
    }
    let mcs = succeed(
        Command::new("nm")
            .arg("-u")
            .arg(built.join("objects/mcs.o")),
    );
    assert!(mcs.contains("process_self"), "nm -u shows what is needed");
}

fn every_function_has_a_page(man: &Path) {
    for name in declared() {
        if name == "unspin_version" {
            continue;
        }
        let page = man.join("man3").join(&name).with_extension("3");
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        let lock = name.strip_prefix("unspin_").expect("a name of ours");
        let documents = text
            .lines()
            .filter_map(|line| line.strip_prefix(".BR "))
            .any(|line| lock.starts_with(line.split(' ').next().unwrap_or("?")));
        assert!(documents, "{name} is not on {}", page.display());
    }
    assert!(man.join("man7/unspin_locks.7").is_file());
}

#[test]
fn the_installed_tree_is_whole_and_goes_away() {
    let installed = Installed::new();
    let library = installed.libraries().join("libunspin.so.0");
    exports_what_the_header_declares(&library);
    needs_libc_alone(&library);
    four_locks_reference_nothing(&installed.built());
    every_function_has_a_page(&installed.dest().join("usr/share/man"));
    assert_eq!(
        installed.pkg_config(&["--modversion"]).trim(),
        env!("CARGO_PKG_VERSION")
    );
    // A second time changes nothing; removal takes away what is ours, and no more.
    let first = files(&installed.dest());
    assert!(first.len() > 70, "{first:?}");
    succeed(&mut installed.install());
    assert_eq!(files(&installed.dest()), first);
    let other = installed.dest().join("usr/include/unspin/other.h");
    fs::write(&other, "").expect("a file");
    let mut remove = Command::new(root().join("lib/install"));
    remove.arg("--remove").arg(installed.built());
    for (name, value) in installed.install().get_envs() {
        remove.env(name, value.expect("a value"));
    }
    succeed(&mut remove);
    assert_eq!(files(&installed.dest()), [other]);
    // Nothing is left to remove.
    assert!(succeed(&mut remove).contains("removed 0 files"));
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let install = || {
        let mut command = Command::new(root().join("lib/install"));
        command
            .arg(folder.path().join("not-built"))
            .env("DESTDIR", folder.path().join("dest"));
        command
    };
    let ended = run(&mut install());
    assert!(!ended.success);
    assert!(ended.err.contains("run make lib"), "{}", ended.err);
    let ended = run(install().env("PREFIX", "usr"));
    assert!(!ended.success);
    assert!(ended.err.contains("begin with a /"), "{}", ended.err);
    let build = |compiler: &str| {
        let mut command = Command::new(root().join("lib/build"));
        command.arg(folder.path().join("built")).env("CC", compiler);
        run(&mut command)
    };
    let ended = build("no-such-compiler");
    assert!(!ended.success);
    assert!(ended.err.contains("apt-get install gcc"), "{}", ended.err);
    let ended = build("false");
    assert!(!ended.success);
    assert!(ended.err.contains("refused a source"), "{}", ended.err);
    assert!(!folder.path().join("dest").exists());
}
