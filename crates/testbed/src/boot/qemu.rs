// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU, the emulator of an AMD machine: its command line, with the reason for every word, and its files in memory.

use std::{
    ffi::OsString,
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use crate::{
    boot::{
        emulator::{Emulator, create_memory_file, inherited_path},
        kernel_command_line::{host_tsc_khz, kernel_command_line},
    },
    channel::{CAPACITY_BYTES, Reader, Source, new_header},
    error::Error,
    options::Options,
    topology::Topology,
};

/// QEMU's files in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QemuFiles {
    /// The emulator.
    pub program: PathBuf,
    /// The folder with its firmware.
    pub firmware: PathBuf,
}

/// Starts it; where its guest writes to is read by what comes with it.
///
/// # Errors
/// [`Error::File`], [`Error::System`].
pub fn start(
    qemu: &QemuFiles,
    options: &Options,
    kernel: &Path,
    initramfs: &File,
    console: &File,
) -> Result<(Emulator, Box<dyn Source>), Error> {
    let channel = create_memory_file(c"unspin-channel")?;
    let sized = channel
        .set_len(CAPACITY_BYTES)
        .and_then(|()| channel.write_all_at(&new_header(CAPACITY_BYTES), 0));
    sized.map_err(|source| Error::System {
        doing: "making the output area",
        source,
    })?;
    let path = inherited_path;
    let files = Files {
        kernel,
        initramfs: &path(initramfs),
        channel: &path(&channel),
        console: &path(console),
    };
    let arguments = qemu_arguments(qemu, options, &files, host_tsc_khz());
    let emulator = Emulator::start(
        &qemu.program,
        &arguments,
        &[],
        &[initramfs, &channel, console],
    )?;
    Ok((emulator, Box::new(Reader::new(channel, CAPACITY_BYTES))))
}

/// Where QEMU finds what the host made for this boot.
struct Files<'a> {
    /// The kernel.
    kernel: &'a Path,
    /// The initramfs.
    initramfs: &'a Path,
    /// The output area.
    channel: &'a Path,
    /// The kernel's console.
    console: &'a Path,
}

/// QEMU's arguments.
///
/// `host_tsc_khz` is the frequency of this machine's time-stamp counter.
fn qemu_arguments(
    qemu: &QemuFiles,
    options: &Options,
    files: &Files,
    host_tsc_khz: u64,
) -> Vec<OsString> {
    let mut arguments = Arguments(Vec::new());
    // Only what is named here exists: no default devices, no configuration of the machine that runs the emulator.
    arguments.words(&[
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-monitor",
        "none",
    ]);
    // A panic, like a power-off, ends the process.
    arguments.words(&["-no-reboot"]);
    arguments.pair("-L", qemu.firmware.as_os_str());
    // q35 boots as fast as pc and microvm do (README) and is what the nested-SVM prototypes ran on.
    arguments.words(&[
        "-machine",
        "q35",
        "-cpu",
        &cpu(options),
        "-smp",
        &options
            .topology
            .map_or_else(|| options.cpus.to_string(), Topology::smp),
    ]);
    arguments.words(&["-m", &options.memory_mib.to_string()]);
    let nodes = options.topology.map(|of| of.nodes(options.memory_mib));
    arguments
        .0
        .extend(nodes.into_iter().flatten().map(Into::into));
    if options.deterministic {
        // One thread and time counted in instructions (2 ns each): nothing of the host's timing can get in.
        arguments.words(&[
            "-accel",
            "tcg,thread=single",
            "-icount",
            "shift=1,sleep=off",
        ]);
        arguments.words(&[
            "-rtc",
            "base=2026-01-01T00:00:00,clock=vm",
            "-seed",
            &options.seed.to_string(),
        ]);
    } else {
        arguments.words(&[
            "-accel",
            "tcg,thread=multi",
            "-seed",
            &options.seed.to_string(),
        ]);
    }
    arguments.pair("-kernel", files.kernel.as_os_str());
    arguments.pair("-initrd", files.initramfs.as_os_str());
    arguments.words(&["-append", &kernel_command_line(options, host_tsc_khz)]);
    arguments.pair("-serial", &joined("file:", files.console));
    let mut area = joined(
        "memory-backend-file,id=channel,share=on,mem-path=",
        files.channel,
    );
    area.push(format!(",size={CAPACITY_BYTES}"));
    arguments.pair("-object", &area);
    arguments.words(&["-device", "ivshmem-plain,memdev=channel"]);
    arguments.0
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn pair(&mut self, name: &str, value: &std::ffi::OsStr) {
        self.0.extend([name.into(), value.to_os_string()]);
    }
}

/// QEMU splits option values at commas; a comma in a path is doubled.
fn joined(prefix: &str, path: &Path) -> OsString {
    OsString::from(format!(
        "{prefix}{}",
        path.to_string_lossy().replace(',', ",,")
    ))
}

fn cpu(options: &Options) -> String {
    // KVM switches PAUSE exits off unless both pause-filter bits are there (svm_vm_init, Linux 7.2); stock TCG has to be
    // forced to show them.
    let mut cpu = "max,+svm,+npt,+pause-filter,+pfthreshold,x-force-features=on".to_string();
    if options.topology.is_some_and(|of| of.caches > 1) {
        // The kernel takes an AMD family below 0x17 for one cache a node (cacheinfo_amd_init_llc_id(), Linux 7.2), and reads
        // which CPUs share one from a leaf that topoext announces.
        cpu.push_str(",+topoext,min-xlevel=0x8000001e,family=23,model=49,stepping=0");
    }
    if options.deterministic {
        cpu.push_str(",-rdrand,-rdseed"); // Else the kernel and every Rust HashMap draw from the host's randomness.
    }
    cpu
}

/// What QEMU wrote to its standard error, without the warnings about features TCG is forced to show.
pub fn last_words(messages: &str) -> String {
    let lines: Vec<_> = messages
        .lines()
        .filter(|line| !line.contains("TCG doesn't support requested feature"))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: impl FnOnce(&mut Options)) -> String {
        let qemu = QemuFiles {
            program: "/cache/qemu".into(),
            firmware: "/cache/share".into(),
        };
        let mut options = Options::new("/cache".into());
        change(&mut options);
        let files = Files {
            kernel: Path::new("/k"),
            initramfs: Path::new("/i"),
            channel: Path::new("/a,b"),
            console: Path::new("/c"),
        };
        let arguments = qemu_arguments(&qemu, &options, &files, 2_345_678);
        arguments
            .iter()
            .map(|argument| argument.to_string_lossy())
            .collect::<Vec<_>>()
            .join("|")
    }

    #[test]
    fn the_timed_line() {
        assert_eq!(
            line(|_| ()),
            "-nodefaults|-no-user-config|-display|none|-monitor|none|-no-reboot|-L|/cache/share|-machine|q35|-cpu|\
             max,+svm,+npt,+pause-filter,+pfthreshold,x-force-features=on|-smp|2|-m|2048|-accel|tcg,thread=multi|-seed|1|\
             -kernel|/k|-initrd|/i|-append|console=ttyS0 quiet panic=-1 oops=panic nokaslr \
             cryptomgr.notests=1 tsc=reliable tsc_early_khz=2345678|-serial|file:/c|-object|memory-backend-file,id=channel,share=on,mem-path=/a,,b,size=268435456|-device|\
             ivshmem-plain,memdev=channel"
        );
    }

    #[test]
    fn the_deterministic_line() {
        let line = line(|options| {
            options.deterministic = true;
            options.seed = 42;
            options.cpus = 3;
            options.kernel_arguments = vec!["a=1".into(), "b".into()];
        });
        for part in [
            "x-force-features=on,-rdrand,-rdseed|-smp|3|",
            "|-accel|tcg,thread=single|-icount|shift=1,sleep=off|-rtc|base=2026-01-01T00:00:00,clock=vm|-seed|42|",
            " nokaslr cryptomgr.notests=1 tsc=reliable tsc_early_khz=1000000 random.trust_cpu=off a=1 b|",
        ] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }
}
