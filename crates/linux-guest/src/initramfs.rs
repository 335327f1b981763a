// SPDX-License-Identifier: MIT OR Apache-2.0
//! The initramfs of a guest: the programs of its load and PID 1, which repeats the load's command.

use std::collections::BTreeSet;
use std::path::Path;

use unspin_testbed::image::cpio::Archive;

use crate::Error;
use crate::features::CountsModule;
use crate::load::Load;
use crate::programs::Programs;

/// PID 1 of every guest; `LOAD` in it is the command of the load.
const INIT: &str = include_str!("init.sh");

/// The guest's initramfs: a shell, the load's program with its libraries, and PID 1, which repeats `command`.
///
/// # Errors
/// When a program is missing or cannot be read.
pub fn build(
    programs: &Programs,
    load: Load,
    counts: CountsModule,
    command: &str,
) -> Result<Vec<u8>, Error> {
    let mut wanted = load.programs().to_vec();
    wanted.extend(counts.programs());
    let files = programs.files(&wanted)?;
    let mut archive = Archive::new();
    let mut folders = BTreeSet::new();
    for folder in ["dev", "proc", "sys", "tmp", "usr/lib64"] {
        add_folders(&mut archive, &mut folders, Path::new(folder));
    }
    archive.character_device("dev/console", 5, 1);
    // The loader's place in every dynamic program of this architecture.
    archive.symbolic_link("lib64", "usr/lib64");
    for file in &files {
        let path = programs.path(file);
        let contents = std::fs::read(&path).map_err(Error::file("reading", &path))?;
        if let Some(parent) = Path::new(file).parent() {
            add_folders(&mut archive, &mut folders, parent);
        }
        archive.file(file, &contents, true);
    }
    let script = INIT.replace("LOAD", &load.timed(command));
    archive.file("init", script.as_bytes(), true);
    if let Some(script) = load.script() {
        archive.file("load.sh", script.as_bytes(), false);
    }
    Ok(archive.finish())
}

/// Adds the folder and those above it that are not there yet, the uppermost first.
fn add_folders(archive: &mut Archive, known: &mut BTreeSet<String>, folder: &Path) {
    let mut chain: Vec<_> = folder
        .ancestors()
        .map(|path| path.to_string_lossy().into_owned())
        .filter(|path| !path.is_empty())
        .collect();
    chain.reverse();
    for path in chain {
        if known.insert(path.clone()) {
            archive.directory(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pid_1_runs_the_command_and_nothing_is_left_to_fill_in() {
        for load in Load::ALL {
            let command = load.timed(&load.command(3, 50));
            let script = INIT.replace("LOAD", &command);
            assert!(script.contains(&format!("if ! {command} >/tmp/out")));
            assert!(!script.contains("LOAD"), "{script}");
        }
        assert_eq!(INIT.matches("LOAD").count(), 1);
    }

    #[test]
    fn folders_come_before_what_lies_in_them() {
        let cache = tempfile::tempdir().expect("a folder");
        for (file, text) in [
            ("kernel/current/vmlinuz", "kernel"),
            (
                "linux-guest/current/busybox.files",
                "usr/bin/busybox\nusr/share/a/b\n",
            ),
            ("linux-guest/current/tree/usr/bin/busybox", "shell"),
            ("linux-guest/current/tree/usr/share/a/b", "deep"),
        ] {
            let path = cache.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let programs = Programs::find(false, cache.path()).expect("there");
        let bytes = build(&programs, Load::Idle, CountsModule::Off, "true").expect("built");
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<_> = text
            .split('\0')
            .filter_map(|part| part.rfind("070701").map(|at| &part[at + 110..]))
            .collect();
        assert_eq!(
            names,
            [
                "dev",
                "proc",
                "sys",
                "tmp",
                "usr",
                "usr/lib64",
                "dev/console",
                "lib64",
                "usr/bin",
                "usr/bin/busybox",
                "usr/share",
                "usr/share/a",
                "usr/share/a/b",
                "init",
                "TRAILER!!!"
            ]
        );
    }
}
