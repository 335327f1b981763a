// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the programs of `bpf/`.
use std::{
    env,
    path::{Path, PathBuf},
};

use libbpf_cargo::SkeletonBuilder;

/// Each object's name and its program in `bpf/`, without the ending.
const OBJECTS: [(&str, &str); 7] = [
    ("observe", "observe/main"),
    ("empty", "observe/empty"),
    ("synthetic", "observe/synthetic"),
    ("steer", "scheduler/main"),
    ("steer_dry", "scheduler/dry"),
    ("thread_run_states", "threads/main"),
    ("window", "window/main"),
];

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for folder in ["bpf", "abi", "policy"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    println!("cargo:rerun-if-env-changed=UNSPIN_CLANG");
    for (name, source) in OBJECTS {
        compile_bpf(&root, &out, name, source);
    }
    write_list(&out);
}

/// `OUT/objects.rs`: all of them by name, for `src/core_compat`.
fn write_list(out: &Path) {
    let rows = OBJECTS.iter().map(|(name, _)| {
        format!("(\"{name}\", include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.bpf.o\"))),\n")
    });
    let list = format!(
        "static OBJECTS: [(&str, &[u8]); {}] = [\n{}];\n",
        OBJECTS.len(),
        rows.collect::<String>()
    );
    std::fs::write(out.join("objects.rs"), list).expect("cargo's folder");
}

/// `bpf/NAME.bpf.c` to `OUT/NAME.bpf.o`.
fn compile_bpf(root: &Path, out: &Path, name: &str, source: &str) {
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
        .source(root.join(format!("bpf/{source}.bpf.c")))
        .obj(out.join(format!("{name}.bpf.o")))
        .clang(clang)
        .clang_args(flags)
        .build()
        .unwrap_or_else(|error| {
            panic!(
                "clang-19 compiles bpf/{source}.bpf.c (UNSPIN_CLANG names another clang): {error:?}"
            )
        });
}
