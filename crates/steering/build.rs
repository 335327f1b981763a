// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles `policy/steering.h` for this machine and generates the Rust view of the contract.
use std::{env, path::PathBuf};

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = manifest.join("../..");
    for folder in ["abi", "policy", "crates/steering/native"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    let bindings = bindgen::Builder::default()
        .header(manifest.join("native/exports.h").to_string_lossy())
        .clang_arg("-std=c11")
        .use_core()
        .allowlist_item("(unspin|UNSPIN|steering)_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
        .generate()
        .expect("bindgen reads policy/steering.h (it needs libclang: `unspin doctor` says how to get it)");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    bindings
        .write_to_file(out.join("steering.rs"))
        .expect("OUT_DIR can be written");
    cc::Build::new()
        .file(manifest.join("native/exports.c"))
        .flag("-std=c11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("unspin_steering");
}
