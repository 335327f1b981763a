// SPDX-License-Identifier: MIT OR Apache-2.0
//! Projects outside of this tree that use the crate: the one of docs/libunspin.md, and one without libc and std.

use std::{fs, path::Path, process::Command};

/// A cargo project with this crate as its dependency.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new(manifest: &str, source: &str, text: &str) -> Project {
        let folder = tempfile::tempdir().expect("a folder");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let manifest = manifest.replace("HERE", &here.display().to_string());
        fs::create_dir(folder.path().join("src")).expect("a folder");
        fs::write(folder.path().join("Cargo.toml"), manifest).expect("a manifest");
        fs::write(folder.path().join("src").join(source), text).expect("a source");
        // The same versions as here: those are downloaded already.
        let lock = here.join("../../Cargo.lock");
        fs::copy(lock, folder.path().join("Cargo.lock")).expect("a lock file");
        Project { folder }
    }

    /// Runs cargo there; returns what it printed.
    fn cargo(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .args(["--release", "--quiet", "--offline"])
            .current_dir(self.folder.path())
            .env("CARGO_TARGET_DIR", self.folder.path().join("target"))
            .env_remove("RUSTFLAGS")
            .output()
            .expect("cargo runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

const PACKAGE: &str =
    "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";

#[test]
fn the_program_of_the_page_runs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/libunspin.md");
    let page = fs::read_to_string(page).expect("the page");
    let (program, rest) = page
        .split_once("```rust\n")
        .and_then(|(_, text)| text.split_once("```"))
        .expect("a program");
    let printed = rest
        .split_once("```text\n")
        .and_then(|(_, text)| text.split_once("```"))
        .expect("what it prints");
    let manifest = format!("{PACKAGE}[dependencies]\nunspin-locks = {{ path = \"HERE\" }}\n");
    let project = Project::new(&manifest, "main.rs", program);
    assert_eq!(project.cargo(&["run"]), printed.0);
}

/// Linked without any library: the lock brings all that it needs.
#[test]
fn a_program_without_libc_takes_a_lock() {
    let manifest = format!(
        "{PACKAGE}[lib]\ncrate-type = [\"staticlib\"]\n[profile.release]\npanic = \"abort\"\n\
         [dependencies]\nunspin-locks = {{ path = \"HERE\", default-features = false }}\n"
    );
    let project = Project::new(
        &manifest,
        "lib.rs",
        "#![no_std]\n\
         use unspin_locks::{Rwlock, TicketMutex};\n\
         static SUM: TicketMutex<u32> = TicketMutex::new(40);\n\
         static STEP: Rwlock<u32> = Rwlock::new(0);\n\
         #[unsafe(no_mangle)]\n\
         pub extern \"C\" fn answer() -> u32 {\n\
         *STEP.write() = 2;\n\
         *SUM.lock() += *STEP.read();\n\
         *SUM.lock()\n\
         }\n\
         #[panic_handler]\n\
         fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n",
    );
    project.cargo(&["build"]);
    let start = project.folder.path().join("start.c");
    fs::write(
        &start,
        "unsigned answer(void);\n\
         __attribute__((force_align_arg_pointer)) void _start(void)\n\
         {\n\
         __asm__ volatile(\"syscall\" ::\"a\"(60), \"D\"(answer()) : \"memory\");\n\
         __builtin_unreachable();\n\
         }\n",
    )
    .expect("a source");
    let program = project.folder.path().join("program");
    let status = Command::new("clang-19")
        .args(["-nostdlib", "-static", "-O1", "-Wl,--gc-sections"])
        .arg(&start)
        .arg(project.folder.path().join("target/release/libuser.a"))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("clang runs");
    assert!(status.success(), "it needs nothing else");
    let status = Command::new(program).status().expect("it runs");
    assert_eq!(status.code(), Some(42));
}
