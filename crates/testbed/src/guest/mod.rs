// SPDX-License-Identifier: MIT OR Apache-2.0
//! PID 1 in the testbed: makes the system usable, runs the one command, sends everything out, switches the machine off.
//! The way out is the memory of the `ivshmem-plain` device: no driver is needed, sysfs offers BAR 2 as a file. A machine that
//! has none says so on the kernel's command line, and its printer is the way out.

mod command;
mod printer;
mod system;

use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use crate::{
    boot::kernel_command_line::PRINTER,
    channel::{CAPACITY_BYTES, Sink, Stream, Writer, printer::PrinterWriter},
    job::{JOB_PATH, Job, OUT_DIRECTORY},
};

/// What PID 1 does. Never returns: at its end the machine is off.
///
/// To be called first thing in `main` when the process id is 1, before any thread is started.
pub fn init_main() -> ! {
    let boot_ns = system::uptime_ns();
    let outcome = std::panic::catch_unwind(|| {
        system::mount_all().and_then(|notes| Ok((notes, open_channel()?)))
    });
    match outcome {
        Ok(Ok((notes, mut channel))) => {
            let channel = &mut *channel;
            send(channel, Stream::InitStarted, &boot_ns.to_le_bytes());
            for note in notes {
                send(channel, Stream::Note, note.as_bytes());
            }
            if let Err(message) = work(channel) {
                send(channel, Stream::InitFailed, message.as_bytes());
            }
        }
        // Without the channel the console is all there is; the host shows it when no exit status comes.
        Ok(Err(message)) => system::say_on_console(&format!("testbed init: {message}")),
        Err(_) => system::say_on_console("testbed init: a bug, see the panic above"),
    }
    system::power_off()
}

/// A frame that finds no room is not lost silently: the area itself tells the host.
fn send(channel: &mut dyn Sink, stream: Stream, bytes: &[u8]) {
    let _ = channel.append(stream, bytes);
}

fn work(channel: &mut dyn Sink) -> Result<(), String> {
    let text = std::fs::read(JOB_PATH).map_err(|error| format!("reading {JOB_PATH}: {error}"))?;
    let job: Job = serde_json::from_slice(&text)
        .map_err(|error| format!("understanding {JOB_PATH}: {error}"))?;
    for module in &job.modules {
        system::load_module(module)?;
    }
    system::raise_limits()?;
    system::give_randomness()?;
    system::stop_khugepaged()?;
    send(
        channel,
        Stream::CommandStarted,
        &system::uptime_ns().to_le_bytes(),
    );
    let status = command::run(&job, channel)?;
    if job.bring_back {
        send_tree(Path::new(OUT_DIRECTORY), channel)?;
    }
    send(channel, Stream::Exit, &u64::from(status).to_le_bytes());
    Ok(())
}

/// QEMU's ivshmem (qemu/docs/specs/ivshmem-spec.rst, QEMU 10.0).
const VENDOR: &str = "0x1af4";
const DEVICE: &str = "0x1110";
/// `PCI_COMMAND` and its bit that lets the device answer to memory accesses (Linux `include/uapi/linux/pci_regs.h`).
const PCI_COMMAND_OFFSET: u64 = 4;
const PCI_COMMAND_MEMORY: u8 = 0x2;

/// The way out of this machine.
fn open_channel() -> Result<Box<dyn Sink>, String> {
    let path = Path::new("/proc/cmdline");
    let words = std::fs::read_to_string(path).map_err(|error| failed(path, &error))?;
    if words.split_whitespace().any(|word| word == PRINTER) {
        let port = printer::ParallelPort::open()
            .map_err(|error| format!("the printer's ports: {error}"))?;
        return Ok(Box::new(PrinterWriter::new(port)));
    }
    Ok(Box::new(map_area()?))
}

/// Maps the output area and checks that it is one.
fn map_area() -> Result<Writer, String> {
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

const CHUNK_BYTES: usize = 1 << 20;

/// Sends every regular file below `root`, in the order of their names so that the same files give the same frames.
///
/// Anything that is neither a directory nor a regular file is named in a note and left out.
fn send_tree(root: &Path, channel: &mut dyn Sink) -> Result<(), String> {
    let mut paths = Vec::new();
    collect(root, &mut paths, channel)?;
    paths.sort();
    for path in paths {
        let failed = |error: std::io::Error| format!("sending {}: {error}", path.display());
        let name = path
            .strip_prefix(root)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let mut file = File::open(&path).map_err(failed)?;
        append(channel, Stream::FileBegin, name.as_os_str().as_bytes())?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let bytes = file.read(&mut chunk).map_err(failed)?;
            if bytes == 0 {
                break;
            }
            append(channel, Stream::FileData, &chunk[..bytes])?;
            channel.beat();
        }
        append(channel, Stream::FileEnd, b"")?;
    }
    Ok(())
}

fn append(channel: &mut dyn Sink, stream: Stream, bytes: &[u8]) -> Result<(), String> {
    channel
        .append(stream, bytes)
        .map_err(|error| error.to_string())
}

fn collect(
    folder: &Path,
    paths: &mut Vec<std::path::PathBuf>,
    channel: &mut dyn Sink,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("reading {}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            collect(&entry.path(), paths, channel)?;
        } else if kind.is_file() {
            paths.push(entry.path());
        } else {
            let note = format!(
                "{} is no regular file and stays in the testbed",
                entry.path().display()
            );
            append(channel, Stream::Note, note.as_bytes())?;
        }
    }
    Ok(())
}
