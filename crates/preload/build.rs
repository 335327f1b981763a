// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles lib/preload/ and links it as a shared library, whose bytes the crate contains. lib/build does the same.
use std::{env, process::Command};

use unspin_headers::{Compiler, Object};

const SOURCES: [&str; 8] = [
    "c11",
    "condition",
    "libc",
    "mutex",
    "process",
    "report",
    "rwlock",
    "spinlock",
];

fn main() {
    let folder = unspin_headers::workspace_folder().join("lib/preload");
    let compiler = Compiler::host()
        .argument("-fPIC")
        .argument("-fvisibility=hidden")
        .define("_GNU_SOURCE", "1")
        .define("UNSPIN_PLATFORM_HEADER", "\"../../lib/process.h\"");
    let objects = SOURCES.map(|name| {
        let source = folder.join(name).with_extension("c");
        compiler.object(&source, &format!("{name}.o"))
    });
    let library = unspin_headers::out_folder().join("libunspin-preload.so");
    // The compiler of the objects. Flags: see lib/build.
    let mut link = Command::new(env::var("UNSPIN_CLANG").unwrap_or_else(|_| "clang-19".into()));
    link.arg("-shared")
        .args(["-Wl,-soname,libunspin-preload.so", "-Wl,-z,defs,-z,now"])
        .args(["-Wl,-Bsymbolic-functions", "-Wl,-z,nodelete,-z,initfirst"])
        .args(Object::make_all(&objects))
        .arg("-o")
        .arg(&library);
    let status = link.status();
    let status = status.unwrap_or_else(|error| panic!("{link:?} cannot be started: {error}"));
    assert!(status.success(), "{link:?} failed");
}
