// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin policy new`, `test` and `build`, and what is said of bad input. Needs a C compiler and clang, as building does.

mod common;

use std::{fs, path::Path, process::Command};

use common::{Ended, ended};

/// Runs `unspin WORDS` in that folder.
fn unspin_in(folder: &Path, words: &[&str]) -> Ended {
    ended(Command::new(common::UNSPIN).args(words).current_dir(folder))
}

#[test]
fn a_new_policy_passes_and_is_built() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| unspin_in(folder.path(), words);
    let made = run(&["policy", "new", "mine"]);
    assert_eq!(made.status, 0, "{made:#?}");
    assert!(
        made.out.contains("unspin policy test ./mine.c"),
        "{}",
        made.out
    );
    let tested = run(&["policy", "test", "./mine.c"]);
    assert_eq!((tested.status, tested.err.as_str()), (0, ""), "{tested:#?}");
    assert_eq!(tested.out, "./mine.c: passed\n");
    for (words, file) in [
        (&["policy", "build", "mine.c"][..], "mine.bpf.o"),
        (&["policy", "build", "./mine.c", "-o", "x.o"][..], "x.o"),
        (
            &["policy", "build", "mine.c", "--dry-run", "-o", "dry.o"][..],
            "dry.o",
        ),
    ] {
        let built = run(words);
        assert_eq!(built.status, 0, "{built:#?}");
        let object = fs::read(folder.path().join(file)).expect("it is there");
        assert!(object.starts_with(b"\x7fELF"));
    }
    // The same text gives the same object, wherever it is compiled.
    let object = |file: &str| fs::read(folder.path().join(file)).expect("it is there");
    assert!(object("mine.bpf.o").len() == object("x.o").len());
    assert!(object("x.o").len() != object("dry.o").len());
    run(&["steer", "--dry-run", "--policy", "x.o"]).refused(1, &["x.o was built to steer by"]);
    run(&["steer", "--policy", "dry.o"]).refused(1, &["dry.o was built for a dry run"]);
    // The same object with another version's hash, and one that is cut off.
    let hash = unspin_policy::user_policy::SOURCES_HASH.as_bytes();
    let mut other = object("x.o");
    let at = other.windows(hash.len()).position(|window| window == hash);
    other[at.expect("the hash is in it")] ^= 1;
    fs::write(folder.path().join("other.o"), &other).expect("written");
    let refused = run(&["steer", "--policy", "other.o,loan"]);
    refused.refused(
        1,
        &[
            "other.o was built by another version",
            "unspin policy build",
        ],
    );
    fs::write(folder.path().join("cut.o"), &other[..500]).expect("written");
    run(&["steer", "--policy", "cut.o"]).refused(1, &["cut.o is no policy"]);
    run(&["policy", "new", "mine"]).refused(1, &["./mine.c", "exists"]);
}

#[test]
fn bad_input_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| unspin_in(folder.path(), words);
    for name in ["loan", "Mine", "a-b", "../a", ""] {
        run(&["policy", "new", name]).refused(2, &["is no name for a policy"]);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    for words in [
        &["policy", "test", "none_such.c"][..],
        &["policy", "build", "none_such.c"],
        &["steer", "--policy", "./none_such.c"],
        &["steer", "--dry-run", "--policy", "./none_such.o,loan"],
        &[
            "testbed",
            "run",
            "--",
            "unspin",
            "steer",
            "--policy",
            "./none_such.c",
        ],
    ] {
        run(words).refused(1, &["none_such", "No such file"]);
    }
    run(&["steer", "--policy", "a.c,b.c"]).refused(2, &["one file"]);
    run(&["policy", "set", "./a.c"]).refused(2, &["while it runs"]);
    fs::write(folder.path().join("text.o"), "no object").expect("written");
    run(&["steer", "--policy", "text.o"]).refused(1, &["text.o is no policy"]);
}

#[test]
fn a_compiler_that_is_missing_or_complains_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = unspin_in(folder.path(), &["policy", "new", "mine"]);
    assert_eq!(made.status, 0, "{made:#?}");
    for (variable, verb, package) in [
        ("UNSPIN_CLANG", "build", "apt-get install clang-19"),
        ("CC", "test", "apt-get install gcc"),
    ] {
        let mut line = Command::new(common::UNSPIN);
        line.args(["policy", verb, "mine.c"])
            .env(variable, "/no/compiler");
        let refused = ended(line.current_dir(folder.path()));
        refused.refused(1, &["/no/compiler", package, "unspin doctor"]);
    }
    let policy = folder.path().join("mine.c");
    let text = fs::read_to_string(&policy).expect("it is there");
    let wrong = text.replace("state->words[0] = 0;", "state->words[0] = nothing;");
    let line = 1 + wrong
        .lines()
        .position(|line| line.contains("nothing;"))
        .expect("it is");
    fs::write(&policy, wrong).expect("written");
    for verb in ["test", "build"] {
        let refused = unspin_in(folder.path(), &["policy", verb, "./mine.c"]);
        refused.refused(1, &[&format!("./mine.c:{line}:"), "nothing"]);
        assert!(
            !refused.err.contains("/tmp/unspin-policy"),
            "{}",
            refused.err
        );
    }
}
