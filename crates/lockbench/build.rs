// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the C drivers: once for all locks together, and once per lock of `abi/guest/lock_kinds.h`.
use std::{env, path::Path, path::PathBuf};

use unspin_abi::LockKind;

/// A compiler call against one platform header. Always optimised: the debug build measures the same code.
fn c_build(root: &Path, platform_header: &str) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .opt_level(2)
        .flag("-std=gnu11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .include(root.join("crates/lockbench/c"))
        .define("UNSPIN_PLATFORM_HEADER", platform_header);
    build
}

/// The baselines of `c/baselines.h` that can be built: Concurrency Kit's only where its headers are (Debian's libck-dev).
fn baselines(c: &Path) -> Vec<&'static str> {
    const CK_HEADER: &str = "/usr/include/ck_spinlock.h";
    println!("cargo:rerun-if-changed={CK_HEADER}");
    let mut baselines = vec!["glibc_mutex", "glibc_spinlock", "parking_lot"];
    if Path::new(CK_HEADER).exists() {
        baselines.extend(["ck_fas", "ck_ticket", "ck_mcs"]);
    }
    for name in &baselines {
        assert!(c.join(format!("baselines/{name}.h")).exists(), "{name}");
    }
    baselines
}

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = manifest.join("../..");
    for folder in ["abi", "locks", "crates/lockbench/c"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    let c = manifest.join("c");
    let threads = "\"threads.h\"";

    let baselines = baselines(&c);
    let mut objects = c_build(&root, threads)
        .file(c.join("drivers.c"))
        .file(c.join("ecs.c"))
        .file(c.join("table.c"))
        .compile_intermediates();
    let mut table = c_build(&root, threads);
    if baselines.iter().any(|name| name.starts_with("ck_")) {
        table.define("UNSPIN_HAS_CK", None);
    }
    objects.extend(table.file(c.join("baselines.c")).compile_intermediates());
    let ours = LockKind::all().map(|kind| (kind.name(), "../../../locks/"));
    for (name, folder) in ours.chain(baselines.iter().map(|name| (*name, "baselines/"))) {
        // A folder per lock: objects are named after their source alone.
        let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join(name);
        let header = format!("\"{folder}{name}.h\"");
        objects.extend(
            c_build(&root, threads)
                .define("DRIVER_LOCK", name)
                .define("DRIVER_LOCK_HEADER", header.as_str())
                .out_dir(out)
                .file(c.join("driver.c"))
                .compile_intermediates(),
        );
    }
    cc::Build::new()
        .objects(objects)
        .compile("unspin_lockbench_c");
}
