// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's command line, with the reason for every word.
//!
//! One word is the frequency of this machine's time-stamp counter: QEMU's RDTSC under TCG without icount is the host's own (`cpu_get_host_ticks`, include/qemu/timer.h, QEMU 10.0). A
//! kernel that calibrates it against emulated timers while the host holds its CPUs up gets it wrong, by a factor of two
//! on a busy machine, and every time measured in the testbed with it. So it is told (`tsc_early_khz`).

use std::{
    arch::x86_64::_rdtsc,
    time::{Duration, Instant},
};

use crate::options::{Options, Vendor};

/// Instructions per second of Bochs' virtual clock, the mean over the CPUs, and ticks per second of its time-stamp counter.
pub const BOCHS_INSTRUCTIONS_PER_SECOND: u64 = 100_000_000;

/// Frequency of the emulated counter in kHz: QEMU's is the host's own, or under icount one tick per nanosecond; that of Bochs
/// counts instructions.
fn tsc_khz(options: &Options, host_tsc_khz: u64) -> u64 {
    match options.vendor {
        Vendor::Intel => BOCHS_INSTRUCTIONS_PER_SECOND / 1000,
        Vendor::Amd if options.deterministic => 1_000_000,
        Vendor::Amd => host_tsc_khz,
    }
}

/// On this word PID 1 writes to the printer: the machine shares no memory with the host.
pub const PRINTER: &str = "unspin.channel=printer";

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
    if options.is_deterministic() {
        words.push("random.trust_cpu=off");
    }
    // The emulator has no generator to seed, but the kernel mixes its command line into its own (random_init_early,
    // drivers/char/random.c, Linux 7.2).
    let seed = format!("unspin.seed={}", options.seed);
    if options.vendor == Vendor::Intel {
        words.extend([
            PRINTER,
            &seed,
            // A CPU of today has these in hardware; the emulator's has not, and its exits would cost as on none.
            "mitigations=off",
        ]);
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

    #[test]
    fn an_intel_machine_knows_its_clock_its_channel_and_its_seed() {
        let mut options = Options::new("/cache".into());
        options.vendor = Vendor::Intel;
        options.seed = 7;
        options.kernel_arguments = vec!["a=1".into()];
        let line = kernel_command_line(&options, 0);
        let end = "tsc_early_khz=100000 random.trust_cpu=off unspin.channel=printer unspin.seed=7 mitigations=off a=1";
        assert!(line.ends_with(end), "{line}");
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
