// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every header of `policy/` compiles by itself for BPF, where the same decisions will be taken.

use std::{env, fs, path::Path, process::Command};

/// Compiles a program for BPF with the compiler that `bpf/` is compiled with.
fn compile(folder: &Path, program: &str) -> Result<(), String> {
    let source = folder.join("program.c");
    fs::write(&source, program).expect("a file");
    let clang = env::var("UNSPIN_CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    let output = Command::new(&clang)
        .args([
            "-target",
            "bpf",
            "-mcpu=v3",
            "-std=c11",
            "-O2",
            "-ffreestanding",
        ])
        .args(["-Wall", "-Wextra", "-Werror", "-c", "-o"])
        .arg(folder.join("program.o"))
        .arg(&source)
        .output()
        .unwrap_or_else(|error| panic!("{clang}: {error} (UNSPIN_CLANG names another clang)"));
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn every_header_compiles_for_bpf() {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy");
    let folder = tempfile::tempdir().expect("a folder");
    let mut headers = 0;
    for entry in fs::read_dir(&policy).expect("policy/") {
        let header = entry.expect("an entry").path();
        let program = format!("#include \"{}\"\n", header.display());
        compile(folder.path(), &program)
            .unwrap_or_else(|error| panic!("{}:\n{error}", header.display()));
        headers += 1;
    }
    assert!(headers >= 6, "{headers} headers");
}

/// A program that calls the decisions: BPF has no signed division, no 128-bit arithmetic and no calls into libraries.
#[test]
fn every_decision_becomes_bpf_code() {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy/all.h");
    let folder = tempfile::tempdir().expect("a folder");
    let program = format!(
        "#include \"{}\"\n{}",
        policy.display(),
        "struct all { struct unspin_ple_facts facts; struct unspin_ple_candidate candidate;\n\
                      struct unspin_ple_reason_facts why; struct unspin_ple_run run;\n\
                      struct unspin_ple_run_exit exit; struct unspin_epoch epoch; };\n\
         unsigned decide(struct all *all)\n\
         {\n\
             unspin_ple_add_candidate(&all->facts, &all->candidate, all->candidate.mode);\n\
             unspin_epoch_add_exit(&all->epoch, all->exit.other_exits);\n\
             return unspin_ple_outcome(&all->facts) + unspin_ple_reason(&all->why) +\n\
                    unspin_ple_run_add(&all->run, &all->exit, 0) +\n\
                    unspin_inefficiency_ppm(&all->epoch, 400);\n\
         }\n"
    );
    compile(folder.path(), &program).unwrap_or_else(|error| panic!("{error}"));
    // What BPF cannot do is found by this test at all.
    let refused = "long divide(long a, long b) { return a / b; }\n";
    assert!(compile(folder.path(), refused).is_err());
}
