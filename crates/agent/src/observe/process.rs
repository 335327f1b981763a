// SPDX-License-Identifier: MIT OR Apache-2.0
//! What /proc says of a thread (proc_pid_stat(5), Linux 7.2 fs/proc/array.c).

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use crate::observe::guest_features;

/// More than a line of `stat`, or the beginning of `status`, ever takes.
const STAT_BYTES_MAX: u64 = 4096;
/// Only the beginning of a command line is searched for `-name`.
const COMMAND_BYTES_MAX: u64 = 64 << 10;
/// Longest name of a VM that is kept, characters.
const NAME_LENGTH_MAX: usize = 64;

/// A thread, or a process's first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub process: u32,
    /// Without control characters: a task may give itself any name.
    pub comm: String,
    /// Clock ticks since boot.
    pub start_ticks: u64,
}

/// The thread of that id; `None`: it has ended, or may not be looked at.
pub(crate) fn thread(proc: &Path, id: u32) -> Option<Thread> {
    let folder = proc.join(id.to_string());
    let stat = read(folder.join("stat"), STAT_BYTES_MAX)?;
    // The name stands in brackets and may hold brackets and spaces itself.
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let comm = printable(stat.get(open + 1..close)?);
    // Field 3 is the first behind the name; field 22 is the start.
    let start_ticks = stat.get(close + 1..)?.split_whitespace().nth(22 - 3)?;
    let status = read(folder.join("status"), STAT_BYTES_MAX)?;
    let process = status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()?;
    Some(Thread {
        process,
        comm,
        start_ticks: start_ticks.parse().ok()?,
    })
}

/// The name that QEMU was given: `-name debian`, `-name guest=debian,debug-threads=on`. Nothing of the command
/// line but this and the features below is looked at: it may hold secrets.
pub(crate) fn qemu_name(proc: &Path, process: u32) -> Option<String> {
    let line = qemu_line(proc, process)?;
    let mut words = line
        .split('\0')
        .skip_while(|word| *word != "-name" && *word != "--name");
    let value = words.nth(1)?;
    let name = value
        .split(',')
        .find_map(|part| part.strip_prefix("guest="))
        .or_else(|| value.split(',').next().filter(|part| !part.contains('=')))?;
    let name: String = printable(name).chars().take(NAME_LENGTH_MAX).collect();
    (!name.is_empty()).then_some(name)
}

/// The paravirtual features that a QEMU's `-cpu` and the kernel's command line in its `-append` ask for.
pub(crate) fn qemu_features(proc: &Path, process: u32) -> Option<String> {
    let line = qemu_line(proc, process)?;
    guest_features::asked_for(line.split('\0'))
}

/// The command line of a process that is a QEMU, its words apart by zero bytes.
fn qemu_line(proc: &Path, process: u32) -> Option<String> {
    let path = proc.join(process.to_string()).join("cmdline");
    let line = read(path, COMMAND_BYTES_MAX)?;
    let program = line.split('\0').next()?.rsplit('/').next()?;
    (program.contains("qemu") || program == "kvm").then_some(line)
}

fn read(path: PathBuf, bytes_max: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(bytes_max)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn printable(text: &str) -> String {
    text.replace(char::is_control, "?")
}
