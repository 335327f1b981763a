// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the programs of `bpf/`, and what of this crate is C.
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use unspin_headers::{Compiler, Object};

/// Each object's name and its program in `bpf/`, without the ending.
const OBJECTS: [(&str, &str); 9] = [
    ("observe", "observe/main"),
    ("empty", "observe/empty"),
    ("synthetic", "observe/synthetic"),
    ("steer", "scheduler/main"),
    ("steer_dry", "scheduler/dry"),
    ("thread_run_states", "threads/main"),
    ("useful_time", "useful_time/main"),
    ("watch", "watch/main"),
    ("window", "window/main"),
];

/// What is loaded by the checks alone.
const TESTED: (&str, &str) = ("policies", "policies/main");

fn main() {
    // libbpf-sys says so in its build script: `links = "bpf"`, `cargo:include`.
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys has its headers");
    let compiler = Compiler::bpf(&PathBuf::from(libbpf));
    let bpf = unspin_headers::workspace_folder().join("bpf");
    let all = OBJECTS.iter().chain([&TESTED]);
    let objects: Vec<Object> = all
        .map(|(name, source)| {
            compiler.object(
                &bpf.join(format!("{source}.bpf.c")),
                &format!("{name}.bpf.o"),
            )
        })
        .collect();
    Object::make_all(&objects);
    write_list();
    core_relocation(&libbpf_folder());
}

/// `native/core_relocation.c`, with libbpf's private header; `libbpf`: its sources.
fn core_relocation(libbpf: &Path) {
    let native = unspin_headers::crate_folder().join("native");
    let compiler = ["include/uapi", "src"]
        .into_iter()
        .fold(Compiler::host(), |compiler, folder| {
            compiler.argument("-isystem").argument(libbpf.join(folder))
        });
    let object = compiler.object(&native.join("core_relocation.c"), "core_relocation.o");
    unspin_headers::bind(&native.join("core_relocation.h"), "core_relocation");
    unspin_headers::library("unspin_core_relocation", &[object]);
}

/// The sources of libbpf that libbpf-sys compiles. Only public headers are installed for others (DEP_BPF_INCLUDE); cargo says
/// where the package is, in a registry or vendored.
fn libbpf_folder() -> PathBuf {
    let [cargo, target] = ["CARGO", "TARGET"].map(|name| env::var(name).expect("cargo sets it"));
    let ask = |network: &[&str]| {
        let output = Command::new(&cargo)
            .args(["metadata", "--format-version=1", "--locked"])
            .args(["--filter-platform", &target])
            .args(network)
            .output();
        output.expect("cargo runs this script")
    };
    let mut output = ask(&["--offline"]);
    if !output.status.success() {
        // The answer covers dependencies of tests, which a mere build has not fetched yet.
        output = ask(&[]);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "cargo metadata failed:\n{complaint}"
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == "libbpf-sys");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = Path::new(manifest.expect("a dependency of this crate"));
    manifest.with_file_name("libbpf")
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
