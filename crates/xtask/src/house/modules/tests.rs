// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small crates with and without cycles.

use super::*;

fn cycles(files: &[(&str, &str)]) -> Vec<String> {
    let texts: Texts = files
        .iter()
        .map(|(file, text)| (PathBuf::from(file), (*text).into()))
        .collect();
    Crate::read(Path::new("crates/x/src/lib.rs"), &texts)
        .unwrap()
        .cycles()
}

#[test]
fn crates_begin_where_cargo_says() {
    let roots = [
        ("crates/x/src/lib.rs", true),
        ("crates/x/src/main.rs", true),
        ("crates/x/tests/a.rs", true),
        ("crates/x/tests/a/main.rs", true),
        ("crates/x/src/a/main.rs", false),
        ("crates/x/tests/a/b.rs", false),
        ("crates/x/build.rs", false),
    ];
    for (file, root) in roots {
        assert_eq!(is_root(Path::new(file)), root, "{file}");
    }
}

#[test]
fn one_way_is_no_cycle() {
    let found = cycles(&[
        ("crates/x/src/lib.rs", "mod a; mod b; pub use a::A;"),
        ("crates/x/src/a.rs", "use crate::b::B; pub struct A(B);"),
        (
            "crates/x/src/b.rs",
            "use std::fmt; use serde::a::A; pub struct B;",
        ),
    ]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn two_that_use_each_other_are_a_cycle_and_the_paths_are_named() {
    let found = cycles(&[
        ("crates/x/src/lib.rs", "mod a; mod b;"),
        (
            "crates/x/src/a.rs",
            "use crate::b::{self, B}; pub struct A(B);",
        ),
        ("crates/x/src/b/mod.rs", "fn f() -> usize { super::a::g() }"),
    ]);
    assert_eq!(
        found,
        [
            "crates/x/src/lib.rs: in crate these use each other in a circle: a, b\
          \n    a uses b: crate::b (a), crate::b::B (a)\
          \n    b uses a: super::a::g (b)"
        ]
    );
}

#[test]
fn what_lib_passes_on_is_a_use_of_where_it_stands() {
    let found = cycles(&[
        (
            "crates/x/src/lib.rs",
            "mod a; mod b; pub use crate::a::A; pub use b::{B as Other};",
        ),
        (
            "crates/x/src/a.rs",
            "use crate::Other; pub struct A(Other);",
        ),
        ("crates/x/src/b.rs", "pub struct B(Box<crate::A>);"),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_module_and_those_below_it_are_one_concept_but_these_among_themselves_are_not() {
    let parent = [
        ("crates/x/src/lib.rs", "mod a;"),
        ("crates/x/src/a.rs", "mod b; mod c; pub struct A(b::B);"),
        ("crates/x/src/a/b.rs", "use super::A; pub struct B(Box<A>);"),
        ("crates/x/src/a/c.rs", "use super::b::B; pub struct C(B);"),
    ];
    assert_eq!(cycles(&parent), [""; 0]);
    let mut beside = parent;
    beside[2].1 = "use super::c::C; pub struct B(Box<C>);";
    let found = cycles(&beside);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("in a these use each other in a circle: b, c"),
        "{found:?}"
    );
}

#[test]
fn a_cycle_by_what_stands_below_is_one_of_those_above() {
    let found = cycles(&[
        (
            "crates/x/src/lib.rs",
            "mod a { mod deep { use crate::b::B; } pub struct A; } mod b;",
        ),
        ("crates/x/src/b.rs", "mod low; pub struct B;"),
        ("crates/x/src/b/low.rs", "fn f(_: crate::a::A) {}"),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn paths_in_macros_count() {
    let found = cycles(&[
        ("crates/x/src/lib.rs", "mod a; mod b;"),
        (
            "crates/x/src/a.rs",
            "fn f() { println!(\"{}\", 1 + crate::b::g(2)); }",
        ),
        ("crates/x/src/b.rs", "use crate::a;"),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn tests_may_look_at_all() {
    let found = cycles(&[
        ("crates/x/src/lib.rs", "mod a; mod b;"),
        (
            "crates/x/src/a.rs",
            "#[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] use crate::b::C;",
        ),
        ("crates/x/src/b.rs", "use crate::a::A;"),
    ]);
    assert_eq!(found, [""; 0]);
}
