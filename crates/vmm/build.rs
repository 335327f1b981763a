// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the micro guest (`guest/`) into one ELF that `src/memory.rs` embeds, and the native work loop.
//!
//! The ELF depends on the sources, the compiler and the linker only: paths are mapped away, no build id, no dates.
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What guest code may not do: no vector registers (nobody saves them), no red zone (interrupts use the stack), no
/// calls into a C library, no position independence (it is linked at the addresses of abi/guest/memory.h).
const GUEST_FLAGS: &[&str] = &[
    "--target=x86_64-unknown-none-elf",
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-ffreestanding",
    "-nostdlibinc",
    "-fno-pic",
    "-fno-pie",
    "-mcmodel=small",
    "-mno-red-zone",
    "-mgeneral-regs-only",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-ident",
    "-fcf-protection=none",
];

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let root = root.canonicalize().expect("the workspace is two levels up");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for room in ["guest", "locks", "abi", "policy"] {
        println!("cargo:rerun-if-changed={}", root.join(room).display());
    }
    println!("cargo:rerun-if-changed=native");
    println!("cargo:rerun-if-env-changed=UNSPIN_CLANG");
    println!("cargo:rerun-if-env-changed=UNSPIN_LD");
    build_image(&root, &out, &root.join("guest"), "guest.elf");
    let calibration = root.join("crates/vmm/native/calibration");
    build_image(&root, &out, &calibration, "calibration.elf");
    cc::Build::new()
        .file("native/work.c")
        .include(&root)
        .flag("-std=gnu11")
        .opt_level(2)
        .compile("unspin_vmm_work");
}

/// Compiles a folder's *.c and *.S and links them with guest/machine/link.ld into OUT_DIR.
fn build_image(root: &Path, out: &Path, folder: &Path, image: &str) {
    let clang = first_that_runs("UNSPIN_CLANG", &["clang-19", "clang"]);
    let linker = first_that_runs("UNSPIN_LD", &["ld.lld-19", "ld"]);
    let mut objects = Vec::new();
    for source in sources(folder) {
        let object = out
            .join(source.file_name().expect("a file"))
            .with_extension(
                // guest.c and guest.S may both exist.
                if source.extension().is_some_and(|e| e == "S") {
                    "S.o"
                } else {
                    "c.o"
                },
            );
        run(Command::new(&clang)
            .current_dir(root)
            .args(GUEST_FLAGS)
            .arg(format!("-ffile-prefix-map={}=.", root.display()))
            .arg("-I.")
            .arg("-c")
            .arg(source.strip_prefix(root).expect("it lies below"))
            .arg("-o")
            .arg(&object));
        objects.push(object);
    }
    run(Command::new(&linker)
        .current_dir(out)
        .args([
            "-m",
            "elf_x86_64",
            "-static",
            "-nostdlib",
            "--build-id=none",
        ])
        .args([
            "--fatal-warnings",
            "-z",
            "noexecstack",
            "-z",
            "max-page-size=4096",
        ])
        .args(["-e", "_start64", "-T"])
        .arg(root.join("guest/machine/link.ld"))
        .args(
            objects
                .iter()
                .map(|object| object.file_name().expect("a file")),
        )
        .args(["-o", image]));
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
