// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures boots: `boots COUNT [deterministic] [stock] [intel] [cpus=N] [console=FILE] [KERNEL-ARGUMENT...]`.
//!
//! Prints a line per boot: host's time to PID 1, host's time in all, testbed's time to PID 1 and to the command,
//! attempts, and checksums of console and output by which two deterministic boots can be compared.

use std::error::Error;
use std::hash::{DefaultHasher, Hasher};

use unspin_testbed::{Options, Qemu, Vendor, cache_from_environment, init_main, run_with};

fn main() -> Result<(), Box<dyn Error>> {
    if std::process::id() == 1 {
        init_main();
    }
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().ok_or("how many boots?")?;
    if first == "in-the-testbed" {
        return inside();
    }
    let mut options = Options::new(cache_from_environment()?);
    for argument in arguments {
        match argument.split_once('=') {
            None if argument == "deterministic" => options.deterministic = true,
            None if argument == "stock" => options.qemu = Qemu::Stock,
            None if argument == "intel" => options.vendor = Vendor::Intel,
            Some(("cpus", value)) => options.cpus = value.parse()?,
            Some(("console", value)) => options.console_file = Some(value.into()),
            _ => options.kernel_arguments.push(argument),
        }
    }
    for _ in 0..first.parse::<u32>()? {
        let mut stdout = Vec::new();
        let command = ["unspin".into(), "in-the-testbed".into()];
        let outcome = run_with(&options, &command, &mut stdout, &mut std::io::stderr())?;
        println!(
            "init {:.2} s, all {:.2} s, testbed's clock: init {:.3} s, command {:.3} s; attempts {}, console {:016x}, output {:016x}",
            outcome.boot_wall.as_secs_f64(),
            outcome.wall.as_secs_f64(),
            outcome.boot_ns as f64 / 1e9,
            outcome.command_start_ns as f64 / 1e9,
            outcome.attempts,
            checksum(&outcome.console),
            checksum(&stdout),
        );
    }
    Ok(())
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// What the measured boots run: something that differs from boot to boot unless the boot is deterministic.
fn inside() -> Result<(), Box<dyn Error>> {
    let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    print!("{random}{}", std::fs::read_to_string("/proc/interrupts")?);
    println!("{:?}", std::fs::metadata("/dev/kvm")?.file_type());
    Ok(())
}
