// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest runs, and the initramfs that runs it.

use std::collections::BTreeSet;
use std::path::Path;

use unspin_testbed::image::cpio::Archive;

use crate::Error;
use crate::features::CountsModule;
use crate::programs::{MAKE, MMAPS, Programs, SHELL, TORTURE};

/// PID 1 of every guest; `LOAD` in it is the command of the load.
const INIT: &str = include_str!("init.sh");

/// Which load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// hackbench of rt-tests: groups of 20 senders and 20 receivers over sockets.
    Hackbench,
    /// `perf bench sched messaging`, the same idea in the kernel's own tool.
    Messaging,
    /// Function calls to all vCPUs, waited for, while the others run in user mode: what TLB shootdowns do, too.
    Calls,
    /// GNU make compiling one file many times, so many at once; with `make linux-guest`.
    Make,
    /// Threads of one process that map, fill and unmap memory (what ebizzy does); with `make linux-guest`.
    Mmaps,
    /// Linux's own lock torture: fails when two are inside one spinlock. Our kernel only.
    Torture,
    /// Sleeps of a second: what a guest costs that has nothing to do.
    Idle,
}

impl Load {
    /// Its word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hackbench => "hackbench",
            Self::Messaging => "messaging",
            Self::Calls => "calls",
            Self::Make => "make",
            Self::Mmaps => "mmaps",
            Self::Torture => "torture",
            Self::Idle => "idle",
        }
    }

    /// The programs that a guest with this load needs.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Hackbench => &[SHELL, "hackbench"],
            Self::Messaging => &[SHELL, "perf"],
            Self::Make => &[SHELL, MAKE],
            Self::Mmaps => &[SHELL, MMAPS],
            Self::Torture => &[SHELL, TORTURE],
            Self::Calls | Self::Idle => &[SHELL],
        }
    }

    /// The command that the guest repeats, for people.
    pub fn command(self, groups: u32, loops: u32) -> String {
        match self {
            Self::Hackbench => format!("/usr/bin/hackbench -g {groups} -l {loops}"),
            Self::Messaging => format!(
                "/usr/bin/perf bench -f simple sched messaging --group {groups} --nr_loops {loops}"
            ),
            Self::Calls => format!("calls {loops}"),
            Self::Make => format!("make_all {groups} {loops}"),
            Self::Mmaps => format!("/usr/bin/mmaps {groups} {loops}"),
            Self::Torture => format!("torture {loops}"),
            Self::Idle => "sleep 1".to_owned(),
        }
    }

    /// The same for PID 1's shell: the last number that it writes is the time it took, in seconds.
    fn timed(self, command: &str) -> String {
        match self {
            // They say it themselves.
            Self::Hackbench
            | Self::Messaging
            | Self::Calls
            | Self::Make
            | Self::Mmaps
            | Self::Torture => command.to_owned(),
            Self::Idle => format!("$B time -f 'Time: %e' $B {command}"),
        }
    }
}

/// The guest's initramfs: a shell, the load's program with its libraries, and PID 1, which repeats `command`.
///
/// # Errors
/// When a program is missing or cannot be read.
pub fn initramfs(
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
        for load in [
            Load::Hackbench,
            Load::Messaging,
            Load::Calls,
            Load::Make,
            Load::Mmaps,
            Load::Torture,
            Load::Idle,
        ] {
            let command = load.timed(&load.command(3, 50));
            let script = INIT.replace("LOAD", &command);
            assert!(script.contains(&format!("if ! {command} >/tmp/out")));
            assert!(!script.contains("LOAD"), "{script}");
        }
        assert_eq!(INIT.matches("LOAD").count(), 1);
        assert_eq!(
            Load::Hackbench.command(3, 50),
            "/usr/bin/hackbench -g 3 -l 50"
        );
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
        let bytes = initramfs(&programs, Load::Idle, CountsModule::Off, "true").expect("built");
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
