// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the freshly booted kernel usable: file systems, modules, limits; and ends it.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

use crate::job::Module;

/// Open files the command may have: a VM takes some ten, and a host shall hold a hundred VMs.
const OPEN_FILES: libc::rlim_t = 65_536;

/// RNDADDENTROPY and its argument, `struct rand_pool_info` with room for 32 bytes (include/uapi/linux/random.h).
const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;

#[repr(C)]
struct RandPoolInfo {
    entropy_bits: libc::c_int,
    buffer_bytes: libc::c_int,
    buffer: [u8; 32],
}

/// Type, place, options, and whether the command can do without.
const MOUNTS: [(&CStr, &CStr, &CStr, bool); 10] = [
    (c"proc", c"/proc", c"", false),
    (c"sysfs", c"/sys", c"", false),
    (c"devtmpfs", c"/dev", c"", false),
    (c"tmpfs", c"/dev/shm", c"mode=1777", false),
    (c"tmpfs", c"/tmp", c"mode=1777", false),
    (c"tmpfs", c"/run", c"mode=755", false),
    (c"cgroup2", c"/sys/fs/cgroup", c"", true),
    (c"debugfs", c"/sys/kernel/debug", c"", true),
    (c"tracefs", c"/sys/kernel/tracing", c"", true),
    (c"bpf", c"/sys/fs/bpf", c"", true),
];

/// Time since the kernel started, in nanoseconds of the testbed's clock.
pub fn uptime_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: time is valid for the write; the clock exists on every kernel the testbed accepts.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Mounts everything and returns a line about each file system the kernel lacks but the command may do without.
pub fn mount_all() -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    for (kind, place, options, optional) in MOUNTS {
        // Only /dev/shm is new; the others are in the initramfs or in sysfs. An existing directory is no error.
        let _ = std::fs::create_dir_all(place.to_string_lossy().as_ref());
        // SAFETY: four terminated strings, of which mount reads at most a page each.
        let result = unsafe {
            libc::mount(
                kind.as_ptr(),
                place.as_ptr(),
                kind.as_ptr(),
                0,
                options.as_ptr().cast(),
            )
        };
        if result < 0 {
            let message = format!("mounting {place:?}: {}", std::io::Error::last_os_error());
            if !optional {
                return Err(message);
            }
            notes.push(message);
        }
    }
    Ok(notes)
}

/// Loads one kernel module.
pub fn load_module(module: &Module) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("loading {} ({}): {error}", module.path, module.parameters)
    };
    let file = File::open(&module.path).map_err(|error| failed(&error))?;
    let parameters = CString::new(module.parameters.as_str()).map_err(|error| failed(&error))?;
    // SAFETY: an open descriptor, a terminated string and no flags; the kernel reads no other memory of ours.
    let result = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            file.as_raw_fd(),
            parameters.as_ptr(),
            0,
        )
    };
    if result < 0 {
        return Err(failed(&std::io::Error::last_os_error()));
    }
    Ok(())
}

/// Declares the kernel's random numbers ready when they are not: in a machine whose clock is its instruction count
/// nothing ever makes them so, and getrandom(2) without flags would wait for ever. Nothing in the testbed is secret, and
/// the same seed gives the same run.
pub fn give_randomness() -> Result<(), String> {
    let mut byte = 0u8;
    // SAFETY: one writable byte; the call does not wait.
    let ready = unsafe { libc::getrandom((&raw mut byte).cast(), 1, libc::GRND_NONBLOCK) };
    if ready == 1 {
        return Ok(());
    }
    let info = RandPoolInfo {
        entropy_bits: 256,
        buffer_bytes: 32,
        buffer: [0x75; 32],
    };
    let failed = |error| format!("seeding the kernel's random numbers: {error}");
    let device = File::options()
        .write(true)
        .open("/dev/urandom")
        .map_err(failed)?;
    // SAFETY: an open descriptor and a live struct, of which the kernel reads the header and 32 bytes.
    if unsafe { libc::ioctl(device.as_raw_fd(), RNDADDENTROPY as _, &raw const info) } < 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    Ok(())
}

/// Waits before it looks for pages to join: `u32::MAX` is for ever (khugepaged_scan_sleep_jiffies(), mm/khugepaged.c, Linux 7.2).
const KHUGEPAGED_SLEEP: &str =
    "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";

/// Keeps khugepaged, the kernel's thread of nice 19 that joins pages of processes, asleep. It holds a process's `mmap_lock` for
/// tens of milliseconds, as it runs here. Beside ten busy tasks on four CPUs its share is 0.6 % of a CPU: each page fault of
/// that process, as of one that measures, then waited for three seconds (1 boot in 12). Page faults make large pages as ever.
pub fn stop_khugepaged() -> Result<(), String> {
    let path = std::path::Path::new(KHUGEPAGED_SLEEP);
    if !path.exists() {
        return Ok(()); // a kernel without it
    }
    std::fs::write(path, u32::MAX.to_string())
        .map_err(|error| format!("{KHUGEPAGED_SLEEP}: {error}"))
}

/// Locked memory without limit (BPF maps, guest memory) and many open files; children inherit both.
pub fn raise_limits() -> Result<(), String> {
    let limits = [
        (libc::RLIMIT_MEMLOCK, libc::RLIM_INFINITY),
        (libc::RLIMIT_NOFILE, OPEN_FILES),
    ];
    for (resource, value) in limits {
        let limit = libc::rlimit {
            rlim_cur: value,
            rlim_max: value,
        };
        // SAFETY: limit is valid for the read.
        if unsafe { libc::setrlimit(resource, &limit) } < 0 {
            return Err(format!(
                "raising a limit: {}",
                std::io::Error::last_os_error()
            ));
        }
    }
    Ok(())
}

/// Writes one line to the kernel's console, for when there is nothing better.
pub fn say_on_console(line: &str) {
    if let Ok(mut console) = File::options().write(true).open("/dev/console") {
        let _ = writeln!(console, "{line}");
    }
}

/// Switches the machine off.
pub fn power_off() -> ! {
    // SAFETY: no memory is involved; PID 1 of a machine that holds nothing worth syncing.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    // Reached only if the kernel refuses. When PID 1 ends the kernel panics, and the emulator ends with it.
    std::process::exit(1)
}
