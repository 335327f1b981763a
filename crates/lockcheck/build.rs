// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the scripted world around `locks/`: as they are, and with room for two waiters in each queue.
use std::{env, path::PathBuf};

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = manifest.join("../..");
    for folder in ["abi", "locks", "crates/lockcheck/c"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    let c = manifest.join("c");
    let world = || {
        let mut build = cc::Build::new();
        build
            .opt_level(2)
            .flag("-std=gnu11")
            .warnings(true)
            .extra_warnings(true)
            .warnings_into_errors(true)
            .include(&c)
            .define("UNSPIN_PLATFORM_HEADER", "\"platform_script.h\"")
            .file(c.join("script.c"));
        build
    };
    let two = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("two");
    let mut objects = world().compile_intermediates();
    objects.extend(
        world()
            .define("SCRIPT_NAME", "script_calls_two")
            .define("PLATFORM_WAITERS_MAX", "2u")
            .out_dir(two)
            .compile_intermediates(),
    );
    cc::Build::new()
        .objects(objects)
        .compile("unspin_lockcheck_c");
}
