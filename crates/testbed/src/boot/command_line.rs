// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator's and the kernel's command lines, with the reason for every word.
//!
//! One word is the frequency of this machine's time-stamp counter: QEMU's RDTSC under TCG without icount is the host's own (`cpu_get_host_ticks`, include/qemu/timer.h, QEMU 10.0). A
//! kernel that calibrates it against emulated timers while the host holds its CPUs up gets it wrong, by a factor of two
//! on a busy machine, and every time measured in the testbed with it. So it is told (`tsc_early_khz`).

use std::{
    arch::x86_64::_rdtsc,
    ffi::OsString,
    path::Path,
    time::{Duration, Instant},
};

use crate::{channel::CAPACITY_BYTES, image::cache::Machine, options::Options, topology::Topology};

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
    // Calibrating it against emulated timers goes wrong on a busy host.
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

/// How long is measured: an error of a microsecond at each end is then one in ten thousand.
const SPAN: Duration = Duration::from_millis(20);
/// Readings at each end, of which the least disturbed counts.
const READINGS: usize = 100;

/// Measures the counter in kHz. Takes 20 ms.
pub fn host_tsc_khz() -> u64 {
    let (first_ticks, first_time) = reading();
    std::thread::sleep(SPAN);
    let (last_ticks, last_time) = reading();
    let nanoseconds = last_time.duration_since(first_time).as_nanos().max(1);
    let ticks = u128::from(last_ticks.wrapping_sub(first_ticks));
    (ticks * 1_000_000 / nanoseconds) as u64
}

/// Counter and clock at the same moment: of many pairs the one between whose counter readings the least passed.
fn reading() -> (u64, Instant) {
    let pair = || {
        let before = ticks();
        let time = Instant::now();
        let after = ticks();
        (after.wrapping_sub(before), (before, time))
    };
    let (mut shortest, mut best) = pair();
    for (length, candidate) in std::iter::repeat_with(pair).take(READINGS) {
        if length < shortest {
            (shortest, best) = (length, candidate);
        }
    }
    best
}

fn ticks() -> u64 {
    // SAFETY: reads a counter that every x86-64 CPU has; no memory is touched.
    unsafe { _rdtsc() }
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

    #[test]
    fn two_measurements_agree_and_are_those_of_a_cpu() {
        let (first, second) = (host_tsc_khz(), host_tsc_khz());
        assert!((400_000..20_000_000).contains(&first), "{first} kHz");
        assert!(
            first.abs_diff(second) * 500 < first,
            "{first} and {second} kHz"
        );
    }
}
