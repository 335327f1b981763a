// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the micro guest (`guest/`) into one ELF that `src/memory.rs` embeds, and the native work loop.
//!
//! The ELF depends on the sources, the compiler and the linker only: paths are mapped away, no build id, no dates.
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use unspin_headers::{Compiler, Object};

fn main() {
    let own = unspin_headers::crate_folder();
    let root = unspin_headers::workspace_folder();
    println!("cargo:rerun-if-env-changed=UNSPIN_LD");
    build_image(&root, &root.join("guest"), "guest");
    build_image(&root, &own.join("native/calibration"), "calibration");
    let work = Compiler::host()
        .include(&root)
        .object(&own.join("native/work.c"), "work.o");
    unspin_headers::library("unspin_vmm_work", &[work]);
}

/// Compiles a folder's *.c and *.S and links them with guest/machine/link.ld into OUT_DIR as IMAGE.elf.
fn build_image(root: &Path, folder: &Path, image: &str) {
    // A new source belongs to the image.
    unspin_headers::watch(folder);
    let script = root.join("guest/machine/link.ld");
    unspin_headers::watch(&script);
    let compiler = Compiler::freestanding().argument("-I.");
    let objects = sources(folder).into_iter().map(|source| {
        // guest.c and guest.S may both exist. Named from the workspace, as the compiler's messages name it.
        let name = source.file_name().expect("a file").to_string_lossy();
        let name = format!("{image}/{name}.o");
        compiler.object(source.strip_prefix(root).expect("it lies below"), &name)
    });
    let objects = Object::make_all(&objects.collect::<Vec<_>>());
    let linker = first_that_runs("UNSPIN_LD", &["ld.lld-19", "ld"]);
    let flags = "-m elf_x86_64 -static -nostdlib --build-id=none --fatal-warnings -z noexecstack -z max-page-size=4096";
    run(Command::new(&linker)
        .current_dir(unspin_headers::out_folder())
        .args(flags.split(' '))
        .args(["-e", "_start64", "-T"])
        .arg(script)
        // By names without folders: the ELF has no path of this machine.
        .args(objects.iter().map(|object| {
            let name = object.file_name().expect("a file");
            Path::new(image).join(name)
        }))
        .args(["-o", &format!("{image}.elf")]));
}

/// A folder's *.c and *.S by name, so that the order of a directory listing cannot change the ELF.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c" || e == "S"))
        .collect();
    sources.sort();
    assert!(!sources.is_empty(), "no source in {}", folder.display());
    sources
}

/// The tool named by the environment variable, or the first candidate that answers `--version`.
fn first_that_runs(variable: &str, candidates: &[&str]) -> String {
    if let Ok(tool) = env::var(variable) {
        return tool;
    }
    candidates
        .iter()
        .find(|tool| {
            Command::new(tool)
                .arg("--version")
                .output()
                .is_ok_and(|output| output.status.success())
        })
        .unwrap_or_else(|| panic!("none of {candidates:?} runs; install one or set {variable}"))
        .to_string()
}

/// Runs a command; its failure ends the build with what it said.
fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{said}");
    for line in said.lines().filter(|line| line.contains("warning:")) {
        println!("cargo:warning={line}");
    }
}
