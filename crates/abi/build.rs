// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates the Rust view of `abi/*.h`: one source for the layouts, checked by bindgen's own size assertions.
use std::{env, path::PathBuf};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let abi = root.join("abi");
    println!("cargo:rerun-if-changed={}", abi.display());
    let bindings = bindgen::Builder::default()
        .header(abi.join("all.h").to_string_lossy())
        .clang_arg("-std=c11")
        .use_core()
        .allowlist_item("(unspin|UNSPIN)_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
        .generate()
        .expect("bindgen reads abi/all.h (it needs libclang: `unspin doctor` says how to get it)");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    bindings
        .write_to_file(out.join("abi.rs"))
        .expect("OUT_DIR can be written");
    cc::Build::new()
        .file(abi.join("names.c"))
        .flag("-std=c11")
        .compile("unspin_abi_names");
}
