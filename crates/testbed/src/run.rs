// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one command in the testbed: builds what goes in, boots, passes on what comes out, tries again when a boot fails.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::boot::attempt::{Attempt, Finished, note};
use crate::boot::emulator::{Emulator, contents, create_memory_file};
use crate::boot::{bochs, qemu, record};
use crate::channel::Source;
use crate::error::{Error, Failure};
use crate::image::cache::{EmulatorFiles, Machine};
use crate::image::{initramfs, kernel_image};
use crate::options::Options;

/// How many lines of the console are shown when a boot fails.
const CONSOLE_LINES: usize = 80;

/// What became of a command that ran to its end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command's exit status; 128 + n when signal n ended it, 127 and 126 as a shell gives them.
    pub status: i32,
    /// Boots it took, 1 when the first went well.
    pub attempts: u32,
    /// Why the earlier ones failed.
    pub failures: Vec<Failure>,
    /// From the kernel's first instruction to PID 1, by the testbed's clock (virtual in the deterministic mode).
    pub boot_ns: u64,
    /// From the kernel's first instruction to the command, by the testbed's clock.
    pub command_start_ns: u64,
    /// From starting the emulator to PID 1, by the host's clock.
    pub boot_wall: Duration,
    /// From starting the emulator to its end, by the host's clock.
    pub wall: Duration,
    /// Everything the kernel wrote to its console: the same bytes for the same deterministic run.
    pub console: Vec<u8>,
    /// The files brought back, relative to `Options::bring_back`.
    pub files: Vec<PathBuf>,
}

/// Runs `command` in the testbed; its output goes to this process's standard output and error as it comes.
///
/// The first word is looked for in `/bin`, which holds the running binary as `unspin`. Ctrl-C ends the emulator with this
/// process; so does anything else that ends the calling thread.
///
/// # Errors
/// Everything in [`Error`]; a command that fails is no error.
pub fn run(options: &Options, command: &[OsString]) -> Result<Outcome, Error> {
    run_with(
        options,
        command,
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    )
}

/// As [`run`], with the output going to `stdout` and `stderr`. Notes of the testbed itself go to `stderr`.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    options: &Options,
    command: &[OsString],
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> Result<Outcome, Error> {
    options.check()?;
    if command.is_empty() {
        return Err(Error::Option("the testbed needs a command to run".into()));
    }
    let machine = Machine::for_options(options)?;
    let kernel = kernel_image::bootable(&machine.vmlinuz)?;
    let initramfs = create_memory_file(c"unspin-initramfs")?;
    let built = initramfs::build(&machine, options, command)?;
    write_all(&initramfs, &built)?;
    drop(built);
    let mut failures = Vec::new();
    loop {
        let number = failures.len() as u32 + 1;
        let mut boot = Boot::prepare(&machine, options, &kernel, &initramfs)?;
        let (result, output_begun) = boot.run(stdout, stderr)?;
        if let Err(error) = record::append(options, result.as_ref().err()) {
            note(stderr, &format!("this boot is not in the record: {error}"))?;
        }
        let failure = match result {
            Ok(finished) => return Ok(boot.outcome(finished, number, failures)),
            Err(failure) => failure,
        };
        let last = output_begun || number >= options.attempts;
        if options.echo_console {
            show_console(stderr, &boot.console())?;
        }
        if last {
            return Err(Error::Failed {
                reason: failure,
                attempt: number,
                attempts: options.attempts,
                output_begun,
            });
        }
        note(stderr, &format!("{failure}; trying once more"))?;
        failures.push(failure);
    }
}

/// What one boot needs on the host.
struct Boot<'a> {
    options: &'a Options,
    machine: &'a Machine,
    kernel: &'a Path,
    initramfs: &'a File,
    console: File,
}

impl<'a> Boot<'a> {
    fn prepare(
        machine: &'a Machine,
        options: &'a Options,
        kernel: &'a Path,
        initramfs: &'a File,
    ) -> Result<Self, Error> {
        let console = match &options.console_file {
            None => create_memory_file(c"unspin-console")?,
            Some(path) => {
                let file = File::options()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .open(path);
                file.map_err(|source| Error::File {
                    doing: "writing",
                    path: path.clone(),
                    source,
                })?
            }
        };
        Ok(Self {
            options,
            machine,
            kernel,
            initramfs,
            console,
        })
    }

    /// Boots and follows the machine to its end; also says whether standard output has begun.
    fn run(
        &mut self,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> Result<(Result<Finished, Failure>, bool), Error> {
        let (emulator, channel) = self.start()?;
        let mut attempt = Attempt::new(
            self.options,
            emulator,
            channel,
            &self.console,
            stdout,
            stderr,
        );
        let result = attempt.follow()?;
        Ok((result, attempt.output_begun))
    }

    fn start(&self) -> Result<(Emulator, Box<dyn Source>), Error> {
        let (options, kernel) = (self.options, self.kernel);
        let (initramfs, console) = (self.initramfs, &self.console);
        match &self.machine.emulator {
            EmulatorFiles::Qemu(files) => qemu::start(files, options, kernel, initramfs, console),
            EmulatorFiles::Bochs(files) => bochs::start(files, options, kernel, initramfs, console),
        }
    }

    fn console(&self) -> Vec<u8> {
        contents(&self.console)
    }

    fn outcome(&self, finished: Finished, attempts: u32, failures: Vec<Failure>) -> Outcome {
        Outcome {
            status: finished.status as i32,
            attempts,
            failures,
            boot_ns: finished.boot_ns,
            command_start_ns: finished.command_start_ns,
            boot_wall: finished.boot_wall,
            wall: finished.wall,
            console: self.console(),
            files: finished.files,
        }
    }
}

fn write_all(mut file: &File, bytes: &[u8]) -> Result<(), Error> {
    let written = file.write_all(bytes).and_then(|()| file.rewind());
    written.map_err(|source| Error::System {
        doing: "writing the initramfs",
        source,
    })
}

fn show_console(stderr: &mut dyn Write, console: &[u8]) -> Result<(), Error> {
    let text = String::from_utf8_lossy(console);
    let lines: Vec<_> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(CONSOLE_LINES)..];
    note(
        stderr,
        &format!("the last {} lines of its console:", shown.len()),
    )?;
    for line in shown {
        writeln!(stderr, "  | {}", line.trim_end()).map_err(Error::Output)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_is_shown_from_its_end() {
        let console: String = (0..100).map(|line| format!("line {line}\r\n")).collect();
        let mut shown = Vec::new();
        show_console(&mut shown, console.as_bytes()).expect("a vector takes everything");
        let shown = String::from_utf8(shown).expect("text");
        assert!(
            shown.starts_with("unspin testbed: the last 80 lines of its console:\n  | line 20\n"),
            "{shown}"
        );
        assert!(shown.ends_with("  | line 99\n"), "{shown}");
    }

    #[test]
    fn a_run_without_a_command_or_a_cache_is_refused_before_anything_starts() {
        let options = Options::new("/nonexistent".into());
        let mut sink = std::io::sink();
        let none = run_with(&options, &[], &mut std::io::sink(), &mut sink)
            .expect_err("no command")
            .to_string();
        assert!(none.contains("needs a command"), "{none}");
        let missing = run_with(&options, &["true".into()], &mut std::io::sink(), &mut sink)
            .expect_err("no cache");
        assert!(missing.to_string().contains("`make setup`"), "{missing}");
    }
}
