// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles `bpf/observe.bpf.c` and generates its skeleton.
use std::{env, path::PathBuf};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    compile_bpf(&root, &out);
}

fn compile_bpf(root: &std::path::Path, out: &std::path::Path) {
    println!("cargo:rerun-if-changed={}", root.join("bpf").display());
    println!("cargo:rerun-if-changed={}", root.join("abi").display());
    println!("cargo:rerun-if-env-changed=UNSPIN_CLANG");
    let clang = env::var("UNSPIN_CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    let prefix = format!("-ffile-prefix-map={}=.", root.display());
    // -mcpu=v3: 32-bit registers and atomics that return values, Linux 5.12.
    let flags = [
        "-mcpu=v3",
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-Werror",
        prefix.as_str(),
    ];
    SkeletonBuilder::new()
        .source(root.join("bpf/observe.bpf.c"))
        .obj(out.join("observe.bpf.o"))
        .clang(clang)
        .clang_args(flags)
        .build()
        .expect("clang-19 compiles bpf/observe.bpf.c (UNSPIN_CLANG names another clang)");
}
