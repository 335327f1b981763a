// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the programs of `bpf/`.
use std::{env, fs, path::PathBuf};

use unspin_headers::{Compiler, Object};

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
    // libbpf-sys says so in its build script: `links = "bpf"`, `cargo:include`.
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys has its headers");
    let compiler = Compiler::bpf(&PathBuf::from(libbpf));
    let bpf = unspin_headers::workspace_folder().join("bpf");
    let objects = OBJECTS.map(|(name, source)| {
        compiler.object(
            &bpf.join(format!("{source}.bpf.c")),
            &format!("{name}.bpf.o"),
        )
    });
    Object::make_all(&objects);
    write_list();
}

/// `OUT/objects.rs`: all of them by name, for `src/kernel/core_compat`.
fn write_list() {
    let rows = OBJECTS.iter().map(|(name, _)| {
        format!("(\"{name}\", include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.bpf.o\"))),\n")
    });
    let list = format!(
        "static OBJECTS: [(&str, &[u8]); {}] = [\n{}];\n",
        OBJECTS.len(),
        rows.collect::<String>()
    );
    let file = unspin_headers::out_folder().join("objects.rs");
    fs::write(file, list).expect("cargo's folder");
}
