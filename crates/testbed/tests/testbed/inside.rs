// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests run in the testbed.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

/// `KVM_GET_API_VERSION`, `_IO(0xAE, 0)` (Linux `include/uapi/linux/kvm.h`); every kernel since 2.6.22 answers 12.
const KVM_GET_API_VERSION: libc::c_ulong = 0xae00;

/// Bytes of every value that are not periodic in any power of two.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Runs one of the commands below and ends the process.
pub fn main(words: &[String]) -> ! {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["echo", path] => echo(Path::new(path)),
        ["look"] => look(),
        ["print", paths @ ..] => paths
            .iter()
            .try_for_each(|path| std::fs::read_to_string(path).map(|text| print!("{text}"))),
        ["clock"] => clock(),
        ["die"] => Err(Command::new("/bin/unspin")
            .args(["inside", "kill-parent"])
            .status()
            .expect_err("killed by then")),
        ["kill-parent"] => kill_parent(),
        ["leave-a-child"] => Command::new("/bin/unspin")
            .args(["inside", "sleep"])
            .spawn()
            .map(|_| println!("parent")),
        ["sleep"] => sleep(),
        ["wobble"] => wobble(),
        ["wobble-on-kvm"] => kvm_intel().and_then(|()| wobble()),
        ["panic"] => std::fs::write("/proc/sysrq-trigger", "c"),
        ["speak-and-panic"] => speak().and_then(|()| std::fs::write("/proc/sysrq-trigger", "c")),
        ["speak-and-sleep"] => speak().and_then(|()| sleep()),
        ["flood", mib] => flood(mib.parse().expect("a number of MiB")),
        _ => panic!("unknown: {words:?}"),
    };
    if let Err(error) = result {
        eprintln!("{words:?}: {error}");
        std::process::exit(1);
    }
    std::process::exit(0)
}

fn echo(path: &Path) -> std::io::Result<()> {
    let contents = std::fs::read(path)?;
    std::io::stdout().write_all(&contents)?;
    std::fs::create_dir_all("/out/deep/er")?;
    std::fs::write("/out/deep/er/copy", contents)?;
    std::fs::write("/out/a", "")?;
    eprint!(
        "to standard error, without a newline: {}",
        std::env::var("MARK").unwrap_or_default()
    );
    std::process::exit(7)
}

fn look() -> std::io::Result<()> {
    for file in [
        "/proc/self/stat",
        "/sys/kernel/btf/vmlinux",
        "/dev/null",
        "/sys/fs/cgroup/cgroup.controllers",
        "/sys/kernel/debug/kvm",
        "/sys/kernel/tracing/events/kvm/kvm_exit/id",
        "/sys/kernel/btf/kvm_amd",
    ] {
        std::fs::metadata(file).map_err(|error| std::io::Error::new(error.kind(), file))?;
    }
    for folder in ["/tmp", "/run", "/dev/shm", "/sys/fs/bpf", "/out", "."] {
        let file = Path::new(folder).join("probe");
        // bpffs holds no plain files, but folders.
        if folder == "/sys/fs/bpf" {
            std::fs::create_dir(&file)?
        } else {
            std::fs::write(&file, "x")?
        }
    }
    let sleep_ms = std::fs::read_to_string(
        "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs",
    )?;
    assert_eq!(sleep_ms.trim(), u32::MAX.to_string(), "khugepaged is awake");
    kvm_version()
}

fn kvm_version() -> std::io::Result<()> {
    let kvm = File::options().read(true).write(true).open("/dev/kvm")?;
    // SAFETY: this ioctl takes no argument and touches no memory.
    let version = unsafe { libc::ioctl(kvm.as_raw_fd(), KVM_GET_API_VERSION, 0) };
    println!("/dev/kvm answers with version {version}");
    Ok(())
}

/// Parameters of KVM's module and its version.
fn kvm_intel() -> std::io::Result<()> {
    for parameter in ["ple_window", "ple_gap"] {
        let path = format!("/sys/module/kvm_intel/parameters/{parameter}");
        print!("{}", std::fs::read_to_string(path)?);
    }
    kvm_version()
}

/// What the kernel takes the counter's frequency for, in kHz.
fn clock() -> std::io::Result<()> {
    let now = || {
        // SAFETY: reads a counter that every x86-64 CPU has; no memory is touched.
        let ticks = unsafe { std::arch::x86_64::_rdtsc() };
        (ticks, std::time::Instant::now())
    };
    let first = now();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let last = now();
    let microseconds = last.1.duration_since(first.1).as_micros() as u64;
    println!("{}", (last.0 - first.0) * 1_000 / microseconds);
    Ok(())
}

fn kill_parent() -> std::io::Result<()> {
    // SAFETY: both calls take plain integers.
    unsafe { libc::kill(libc::getppid(), libc::SIGKILL) };
    sleep()
}

fn sleep() -> std::io::Result<()> {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}

fn speak() -> std::io::Result<()> {
    println!("spoken");
    // PID 1 has to carry it before the kernel dies.
    std::thread::sleep(std::time::Duration::from_secs(2));
    Ok(())
}

/// Everything that differs from run to run on a real machine: time, random numbers, interrupts, who ran when.
fn wobble() -> std::io::Result<()> {
    let mut log = Vec::new();
    for round in 0..20 {
        let threads: Vec<_> = (0..3)
            .map(|_| std::thread::spawn(|| std::time::Instant::now().elapsed()))
            .collect();
        let spans: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect();
        let now = std::time::SystemTime::now();
        writeln!(
            log,
            "{round} {now:?} {spans:?} {:?}",
            std::collections::hash_map::RandomState::new()
        )?;
        let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        println!("{round} {random} {now:?}");
    }
    log.extend(std::fs::read("/proc/interrupts")?);
    log.extend(std::fs::read("/proc/schedstat")?);
    std::fs::write("/out/log", log)
}

fn flood(mib: usize) -> std::io::Result<()> {
    let chunk = vec![b'x'; 1 << 20];
    let mut stdout = std::io::stdout().lock();
    (0..mib).try_for_each(|_| stdout.write_all(&chunk))
}
