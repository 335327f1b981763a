// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the library's locks (lib/locks/), those that the crate's features ask for.

use unspin_headers::Compiler;

/// They reference nothing outside of their own object.
const FREESTANDING: [&str; 4] = [
    "test_and_test_and_set",
    "ticket",
    "preemptable_ticket",
    "rwlock",
];
/// They number threads, or call the kernel.
const STD: [&str; 3] = ["mcs", "qspinlock", "helping"];
/// Their waiters sleep.
const PARKING: [&str; 6] = [
    "mutex",
    "paravirtual_ticket",
    "paravirtual_preemptable_ticket",
    "paravirtual_qspinlock",
    "linux_mutex",
    "rwsem",
];

fn main() {
    let has = |feature: &str| std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let lib = unspin_headers::workspace_folder().join("lib");
    let compiler = Compiler::host().define("UNSPIN_PLATFORM_HEADER", "\"../../lib/process.h\"");
    let mut names = FREESTANDING.to_vec();
    let mut objects = Vec::new();
    if has("STD") {
        names.extend(STD);
        objects.push(compiler.object(&lib.join("threads.c"), "threads.o"));
    }
    if has("PARKING") {
        names.extend(PARKING);
    }
    for name in names {
        let source = lib.join(format!("locks/{name}.c"));
        objects.push(compiler.object(&source, &format!("{name}.o")));
    }
    unspin_headers::library("unspin_locks_c", &objects);
}
