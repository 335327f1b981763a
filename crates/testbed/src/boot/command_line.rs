// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator's and the kernel's command lines, with the reason for every word.

use std::ffi::OsString;
use std::path::Path;

use crate::boot::channel::CAPACITY_BYTES;
use crate::image::cache::Machine;
use crate::options::Options;

/// Where QEMU finds what the host made for this boot.
pub struct Files<'a> {
    /// The kernel.
    pub kernel: &'a Path,
    /// The initramfs.
    pub initramfs: &'a Path,
    /// The output area.
    pub channel: &'a Path,
    /// The kernel's console.
    pub console: &'a Path,
}

/// QEMU's arguments.
///
/// `host_tsc_khz` is the frequency of this machine's time-stamp counter.
pub fn qemu_arguments(
    machine: &Machine,
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
    arguments.pair("-L", machine.firmware.as_os_str());
    // q35 boots as fast as pc and microvm do (README) and is what the nested-SVM prototypes ran on.
    arguments.words(&[
        "-machine",
        "q35",
        "-cpu",
        &cpu(options),
        "-smp",
        &options.cpus.to_string(),
    ]);
    arguments.words(&["-m", &options.memory_mib.to_string()]);
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
    if options.deterministic {
        cpu.push_str(",-rdrand,-rdseed"); // Else the kernel and every Rust HashMap draw from the host's randomness.
    }
    cpu
}

/// Frequency of the emulated counter in kHz: the host's own, or under icount one tick per nanosecond.
fn tsc_khz(options: &Options, host_tsc_khz: u64) -> u64 {
    if options.deterministic {
        1_000_000
    } else {
        host_tsc_khz
    }
}

/// The kernel's command line.
pub fn kernel_command_line(options: &Options, host_tsc_khz: u64) -> String {
    // Calibrating it against emulated timers goes wrong on a busy host: see host_clock.
    let frequency = format!("tsc_early_khz={}", tsc_khz(options, host_tsc_khz));
    let mut words = vec![
        "console=ttyS0",
        "quiet", // A line on the emulated serial port costs more than what it reports; errors still show.
        "panic=-1", // Reset at once, which -no-reboot turns into the end of the emulator,
        "oops=panic", // also after an oops: what runs on after one measures nothing.
        "nokaslr", // The same addresses in every boot, in the console's stack traces as well.
        // The crypto self-tests compute for seconds on both CPUs after init has started: with them the command began
        // after 6.8 s of the testbed's time, without after 3.1 s (7.2.12, deterministic).
        "cryptomgr.notests=1",
        // The clocksource watchdog would call the TSC unstable when the host holds an emulated CPU up, and switch to
        // one that costs an emulated device access per reading.
        "tsc=reliable",
        &frequency,
    ];
    if options.deterministic {
        words.push("random.trust_cpu=off");
    }
    words.extend(options.kernel_arguments.iter().map(String::as_str));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: impl FnOnce(&mut Options)) -> String {
        let machine = Machine {
            qemu: "/cache/qemu".into(),
            firmware: "/cache/share".into(),
            vmlinuz: "/cache/vmlinuz".into(),
            kernel_version: "7.2.12".into(),
            modules: Vec::new(),
        };
        let mut options = Options::new("/cache".into());
        change(&mut options);
        let files = Files {
            kernel: Path::new("/k"),
            initramfs: Path::new("/i"),
            channel: Path::new("/a,b"),
            console: Path::new("/c"),
        };
        let arguments = qemu_arguments(&machine, &options, &files, 2_345_678);
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
