// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the `ivshmem-plain` device and maps its memory: no driver is needed, sysfs offers BAR 2 as a file.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::boot::channel::{CAPACITY_BYTES, Writer};

/// QEMU's ivshmem (qemu/docs/specs/ivshmem-spec.rst, QEMU 10.0).
const VENDOR: &str = "0x1af4";
const DEVICE: &str = "0x1110";
/// `PCI_COMMAND` and its bit that lets the device answer to memory accesses (Linux `include/uapi/linux/pci_regs.h`).
const PCI_COMMAND_OFFSET: u64 = 4;
const PCI_COMMAND_MEMORY: u8 = 0x2;

/// Maps the output area and checks that it is one.
pub fn map() -> Result<Writer, String> {
    let device = find(Path::new("/sys/bus/pci/devices"))?;
    enable(&device)?;
    let resource = device.join("resource2");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&resource)
        .map_err(|error| failed(&resource, &error))?;
    let bytes = file
        .metadata()
        .map_err(|error| failed(&resource, &error))?
        .len();
    if bytes != CAPACITY_BYTES {
        return Err(format!(
            "the output area has {bytes} bytes, not {CAPACITY_BYTES}"
        ));
    }
    let base = map_shared(&file, bytes as usize).map_err(|error| failed(&resource, &error))?;
    // SAFETY: the mapping is page-aligned, `bytes` long, never unmapped, and made here only, once per boot.
    unsafe { Writer::new(base, bytes) }
        .ok_or_else(|| "the output area was not prepared by this version".to_string())
}

fn find(devices: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(devices).map_err(|error| failed(devices, &error))?;
    let is = |path: &Path, file: &str, value: &str| {
        std::fs::read_to_string(path.join(file)).is_ok_and(|text| text.trim() == value)
    };
    let mut found = entries.flatten().map(|entry| entry.path());
    found
        .find(|path| is(path, "vendor", VENDOR) && is(path, "device", DEVICE))
        .ok_or_else(|| "the machine has no ivshmem device".to_string())
}

/// Without a driver nobody has switched the device's memory on; the configuration space in sysfs can.
fn enable(device: &Path) -> Result<(), String> {
    use std::os::unix::fs::FileExt;
    let path = device.join("config");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|error| failed(&path, &error))?;
    let mut command = [0; 1];
    let changed = file
        .read_exact_at(&mut command, PCI_COMMAND_OFFSET)
        .and_then(|()| {
            command[0] |= PCI_COMMAND_MEMORY;
            file.write_all_at(&command, PCI_COMMAND_OFFSET)
        });
    changed.map_err(|error| failed(&path, &error))
}

fn map_shared(file: &File, bytes: usize) -> std::io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice; the descriptor is open for reading and writing.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            access,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    Ok(base.cast())
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
