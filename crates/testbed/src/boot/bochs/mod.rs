// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bochs, the emulator of an Intel machine with VMX: its configuration, with the reason for every line, and its files in memory.
//!
//! The distribution's own binary with its own libraries (`testbed/bochs/fetch`). It has one thread and counts time in
//! instructions, so every run is deterministic. A loader of ours (`option_rom.s`) reads kernel and initramfs from a disk
//! (`disk`); the guest writes to the printer (`channel::printer`).

mod disk;
mod option_rom;

use std::{
    ffi::OsString,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use crate::{
    boot::{
        emulator::{Emulator, create_memory_file, inherited_path},
        kernel_command_line::{BOCHS_INSTRUCTIONS_PER_SECOND, kernel_command_line},
    },
    channel::{Source, printer::PrinterReader},
    error::Error,
    options::Options,
};

/// Bochs' files in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BochsFiles {
    /// The folder that `testbed/bochs/fetch` made: `tree` stands for `/` of its packages, `clock.so` for the host's clock.
    pub folder: PathBuf,
}

const LOADER: &str = "tree/usr/lib64/ld-linux-x86-64.so.2";
const LIBRARIES: &str = "tree/usr/lib/x86_64-linux-gnu";
const PROGRAM: &str = "tree/usr/bin/bochs-bin";
const SHARE: &str = "tree/usr/share/bochs";
const CLOCK: &str = "clock.so";

impl BochsFiles {
    /// The emulator; the loader of its packages starts it.
    pub fn program(&self) -> PathBuf {
        self.folder.join(PROGRAM)
    }

    /// What must be there.
    pub fn parts(&self) -> [PathBuf; 5] {
        [LOADER, LIBRARIES, PROGRAM, SHARE, CLOCK].map(|part| self.folder.join(part))
    }
}

/// What a configuration names, by the paths by which the emulator opens them.
struct Files {
    rom: PathBuf,
    disk: PathBuf,
    console: PathBuf,
    printer: PathBuf,
    log: PathBuf,
}

/// Starts it; what its guest writes is read by what comes with it.
///
/// # Errors
/// [`Error::Option`] for what this machine cannot boot; [`Error::File`], [`Error::System`].
pub fn start(
    bochs: &BochsFiles,
    options: &Options,
    kernel: &Path,
    initramfs: &File,
    console: &File,
) -> Result<(Emulator, Box<dyn Source>), Error> {
    let [loader, libraries, program, share, clock] = bochs.parts();
    let mut disk = create_memory_file(c"unspin-disk")?;
    let (rom, printer) = (
        create_memory_file(c"unspin-rom")?,
        create_memory_file(c"unspin-printer")?,
    );
    let (log, settings) = (
        create_memory_file(c"unspin-bochs-log")?,
        create_memory_file(c"unspin-bochsrc")?,
    );
    let failed = |source| Error::System {
        doing: "writing the files of the emulated machine",
        source,
    };
    let mut initramfs = initramfs.try_clone().map_err(failed)?;
    let command_line = kernel_command_line(options, 0);
    disk::write(&mut disk, options, kernel, &mut initramfs, &command_line)?;
    (&rom).write_all(&option_rom::bytes()).map_err(failed)?;
    let files = Files {
        rom: inherited_path(&rom),
        disk: inherited_path(&disk),
        console: inherited_path(console),
        printer: inherited_path(&printer),
        log: inherited_path(&log),
    };
    (&settings)
        .write_all(configuration(options, &files).as_bytes())
        .map_err(failed)?;
    let arguments: [OsString; 8] = [
        "--library-path".into(),
        libraries.clone().into(),
        // Its timer that follows the host's clock would make every run another one (testbed/bochs/clock.c).
        "--preload".into(),
        clock.into(),
        program.into(),
        "-q".into(),
        "-f".into(),
        inherited_path(&settings).into(),
    ];
    let environment = [
        ("BXSHARE", share),
        ("LTDL_LIBRARY_PATH", libraries.join("bochs/plugins")),
        ("TERM", "dumb".into()),
    ];
    let emulator = Emulator::start(
        &loader,
        &arguments,
        &environment,
        &[&disk, &rom, console, &printer, &log, &settings],
    )?;
    Ok((emulator, Box::new(PrinterReader::new(printer))))
}

fn configuration(options: &Options, files: &Files) -> String {
    let Files {
        rom,
        disk,
        console,
        printer,
        log,
    } = files;
    let (cpus, memory) = (options.cpus, options.memory_mib);
    let lines = [
        // The only display of the package that needs neither a screen nor a port of the network.
        "display_library: term".into(),
        // A speaker looks for the host's sound card; the others are of no use here.
        "speaker: enabled=1, mode=none".into(),
        "plugin_ctrl: biosdev=0, gameport=0, iodebug=0".into(),
        format!("memory: guest={memory}, host={memory}"),
        "romimage: file=$BXSHARE/BIOS-bochs-latest, options=fastboot".into(),
        "vgaromimage: file=$BXSHARE/VGABIOS-lgpl-latest".into(),
        format!(
            "optromimage1: file={}, address={:#x}",
            rom.display(),
            option_rom::ADDRESS
        ),
        "ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14".into(),
        format!(
            "ata0-master: type=disk, mode=flat, path={}, cylinders=0",
            disk.display()
        ),
        // Tiger Lake: posted interrupts and a TSC deadline timer that Linux uses (Haswell's needs microcode that Bochs has
        // not). RDRAND and RDSEED would draw from a generator that is seeded with the host's time (cpu/init.cc, 3.0).
        format!(
            "cpu: model=tigerlake, count={cpus}:1:1, ips={BOCHS_INSTRUCTIONS_PER_SECOND}, reset_on_triple_fault=0, \
             exclude_features=\"rdrand,rdseed\""
        ),
        // 1 January 2026; no waiting for the host's clock.
        "clock: sync=none, time0=1767225600".into(),
        format!("com1: enabled=1, mode=file, dev={}", console.display()),
        format!("parport1: enabled=1, file={}", printer.display()),
        format!("log: {}", log.display()),
        // A triple fault and the like end it, with a message on standard error.
        "panic: action=fatal".into(),
        "error: action=ignore".into(),
        "info: action=ignore".into(),
        "debug: action=ignore".into(),
        String::new(),
    ];
    lines.join("\n")
}

/// What it says of its end on standard error: the text between two lines of equals signs; failing that the last lines.
pub fn last_words(messages: &str) -> String {
    const BEFORE: &str = "Bochs is exiting with the following message:";
    if let Some((_, after)) = messages.rsplit_once(BEFORE) {
        let lines = after.lines().map(str::trim);
        let said: Vec<_> = lines
            .skip_while(|line| line.is_empty())
            .take_while(|line| !line.starts_with("==="))
            .collect();
        return said.join(" ");
    }
    let lines: Vec<_> = messages.lines().collect();
    lines[lines.len().saturating_sub(3)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_every_file_and_the_machine() {
        let mut options = Options::new("/cache".into());
        options.cpus = 3;
        let files = Files {
            rom: "/rom".into(),
            disk: "/disk".into(),
            console: "/console".into(),
            printer: "/printer".into(),
            log: "/log".into(),
        };
        let text = configuration(&options, &files);
        for part in [
            "memory: guest=2048, host=2048\n",
            "optromimage1: file=/rom, address=0xd0000\n",
            "path=/disk, cylinders=0\n",
            "count=3:1:1, ips=100000000,",
            "exclude_features=\"rdrand,rdseed\"\n",
            "clock: sync=none, time0=1767225600\n",
            "com1: enabled=1, mode=file, dev=/console\n",
            "parport1: enabled=1, file=/printer\n",
            "log: /log\n",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn its_last_words_are_those_of_its_end() {
        let said = "noise\n=====\nBochs is exiting with the following message:\n[CPU0  ] 3rd (13) exception\n=====\n";
        assert_eq!(last_words(said), "[CPU0  ] 3rd (13) exception");
        assert_eq!(last_words("a\nb\nc\nd"), "b\nc\nd");
        assert_eq!(last_words(""), "");
    }
}
