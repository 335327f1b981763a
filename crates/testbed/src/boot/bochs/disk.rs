// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disk of the Intel machine: a head for the loader, then the kernel's ELF file and the initramfs as they are.
//!
//! The kernel is entered as a PVH guest is: `struct hvm_start_info` and its tables, which the head holds, are those of
//! include/xen/interface/hvm/start_info.h (Linux 7.2), version 1; the entry is the ELF note XEN_ELFNOTE_PHYS32_ENTRY.

use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::Path,
};

use object::{
    LittleEndian,
    elf::{FileHeader64, PT_LOAD},
    read::elf::{FileHeader, ProgramHeader},
};

use crate::{error::Error, options::Options};

pub const SECTOR_BYTES: u64 = 512;
/// Where the loader puts the head: the kernel leaves everything below 1 MiB alone (`reserve_real_mode` and setup.c, since 5.13).
pub const HEAD_ADDRESS: u32 = 0x10000;
pub const HEAD_BYTES: usize = 8192;
/// What the head begins with.
pub const MAGIC: u32 = u32::from_le_bytes(*b"unsp");
/// Offsets in the head: the kernel's entry, the loader's table, and what the kernel reads.
pub const ENTRY: u32 = 8;
pub const TABLE: u32 = 0x40;
pub const START_INFO: u32 = 0x200;
const MODULES: u32 = 0x300;
const MEMORY_MAP: u32 = 0x400;
const COMMAND_LINE: u32 = 0x1000;

/// The initramfs lies above every kernel, which begins at 16 MiB.
const INITRAMFS_ADDRESS: u64 = 128 << 20;
/// The end of memory belongs to the ACPI and MP tables of Bochs' BIOS (bios/rombios.h: ACPI_DATA_SIZE, MPTABLE_MAX_SIZE).
const BIOS_TABLES_BYTES: u64 = 128 << 10;
/// What the kernel needs beside the initramfs and its unpacked files.
const WORKING_BYTES: u64 = 192 << 20;
/// The size of a flat disk of Bochs is a multiple of a cylinder: 16 heads of 63 sectors.
const CYLINDER_BYTES: u64 = 16 * 63 * SECTOR_BYTES;

const START_INFO_MAGIC: u32 = 0x336e_c578;
const XEN_ELFNOTE_PHYS32_ENTRY: u32 = 18;
const RAM: u32 = 1;
const RESERVED: u32 = 2;
const ACPI: u32 = 3;

/// A part of the disk and where it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    first_sector: u64,
    sectors: u64,
    address: u64,
}

/// Writes the disk into `disk`, an empty file.
///
/// # Errors
/// [`Error::Option`] for a kernel that is not an unpacked one with a PVH entry, or a command line or files that are too long;
/// [`Error::File`], [`Error::System`].
pub fn write(
    disk: &mut File,
    options: &Options,
    kernel: &Path,
    initramfs: &mut File,
    command_line: &str,
) -> Result<(), Error> {
    let elf = std::fs::read(kernel).map_err(|source| Error::File {
        doing: "reading",
        path: kernel.into(),
        source,
    })?;
    let failed = |source| Error::System {
        doing: "writing the disk of the emulated machine",
        source,
    };
    let initramfs_bytes = initramfs.metadata().map_err(failed)?.len();
    check_memory(options, initramfs_bytes)?;
    let (entry, mut loads) = kernel_loads(&elf).map_err(|why| {
        Error::Option(format!(
            "{} cannot boot in the Intel machine: {why}",
            kernel.display()
        ))
    })?;
    let initramfs_sector = HEAD_BYTES as u64 / SECTOR_BYTES + sectors(elf.len() as u64);
    loads.push(Load {
        first_sector: initramfs_sector,
        sectors: sectors(initramfs_bytes),
        address: INITRAMFS_ADDRESS,
    });
    let head = head(options, entry, &loads, initramfs_bytes, command_line)?;
    let mut put = || -> std::io::Result<()> {
        disk.write_all(&head)?;
        disk.write_all(&elf)?;
        disk.seek(SeekFrom::Start(initramfs_sector * SECTOR_BYTES))?;
        initramfs.rewind()?;
        std::io::copy(initramfs, disk)?;
        let end = initramfs_sector * SECTOR_BYTES + initramfs_bytes;
        disk.set_len(end.next_multiple_of(CYLINDER_BYTES))
    };
    put().map_err(failed)
}

fn sectors(bytes: u64) -> u64 {
    bytes.div_ceil(SECTOR_BYTES)
}

fn check_memory(options: &Options, initramfs_bytes: u64) -> Result<(), Error> {
    let needed = INITRAMFS_ADDRESS + 2 * initramfs_bytes + WORKING_BYTES + BIOS_TABLES_BYTES;
    let needed_mib = needed.div_ceil(1 << 20);
    if needed_mib <= u64::from(options.memory_mib) {
        return Ok(());
    }
    Err(Error::Option(format!(
        "what goes into the Intel machine needs --memory-mib {needed_mib}; it has {}",
        options.memory_mib
    )))
}

/// Where the kernel is entered, and what of its file goes where.
fn kernel_loads(elf: &[u8]) -> Result<(u32, Vec<Load>), String> {
    const LITTLE: LittleEndian = LittleEndian;
    let not_unpacked = |_| "it is no ELF file, and only kernels packed with zstd are unpacked";
    let header = FileHeader64::<LittleEndian>::parse(elf).map_err(not_unpacked)?;
    let broken = |error: object::Error| error.to_string();
    let (mut entry, mut loads) = (None, Vec::new());
    for segment in header.program_headers(LITTLE, elf).map_err(broken)? {
        if let Some(mut notes) = segment.notes(LITTLE, elf).map_err(broken)? {
            while let Some(note) = notes.next().map_err(broken)? {
                let bytes: Option<[u8; 4]> = note.desc().first_chunk().copied();
                if note.name() == b"Xen" && note.n_type(LITTLE) == XEN_ELFNOTE_PHYS32_ENTRY {
                    entry = bytes.map(u32::from_le_bytes);
                }
            }
        }
        if segment.p_type(LITTLE) != PT_LOAD {
            continue;
        }
        let (offset, address) = (segment.p_offset(LITTLE), segment.p_paddr(LITTLE));
        if offset % SECTOR_BYTES != 0 || segment.data(LITTLE, elf).is_err() {
            return Err(format!("a segment lies at byte {offset} of its file"));
        }
        // The kernel clears its own .bss (clear_bss, arch/x86/kernel/head64.c).
        let end = address.saturating_add(segment.p_memsz(LITTLE));
        if address < 1 << 20 || end > INITRAMFS_ADDRESS {
            return Err(format!("a segment belongs at {address:#x} to {end:#x}"));
        }
        loads.push(Load {
            first_sector: (HEAD_BYTES as u64 + offset) / SECTOR_BYTES,
            sectors: sectors(segment.p_filesz(LITTLE)),
            address,
        });
    }
    loads.retain(|load| load.sectors > 0);
    let entry = entry.ok_or("it has no PVH entry (CONFIG_PVH)")?;
    Ok((entry, loads))
}

/// The head: what the loader and the kernel read.
fn head(
    options: &Options,
    entry: u32,
    loads: &[Load],
    initramfs_bytes: u64,
    command_line: &str,
) -> Result<Vec<u8>, Error> {
    let mut head = Head(vec![0; HEAD_BYTES]);
    let address = |offset: u32| u64::from(HEAD_ADDRESS + offset);
    head.put(0, &[u64::from(MAGIC)], 4);
    head.put(ENTRY, &[entry.into()], 4);
    let rows = loads
        .iter()
        .flat_map(|load| [load.first_sector, load.sectors, load.address]);
    let rows: Vec<u64> = rows.collect();
    assert!(TABLE as usize + 4 * (rows.len() + 3) <= START_INFO as usize);
    head.put(TABLE, &rows, 4);
    let map = memory_map(options);
    // magic, version, flags, modules; then addresses: modules, command line, RSDP (searched for), memory map.
    head.put(START_INFO, &[START_INFO_MAGIC.into(), 1, 0, 1], 4);
    let tables = [
        address(MODULES),
        address(COMMAND_LINE),
        0,
        address(MEMORY_MAP),
    ];
    head.put(START_INFO + 16, &tables, 8);
    head.put(START_INFO + 48, &[map.len() as u64, 0], 4);
    head.put(MODULES, &[INITRAMFS_ADDRESS, initramfs_bytes, 0, 0], 8);
    for (at, (start, end, kind)) in (MEMORY_MAP..).step_by(24).zip(map) {
        head.put(at, &[start, end - start], 8);
        head.put(at + 16, &[kind.into(), 0], 4);
    }
    let room = HEAD_BYTES - COMMAND_LINE as usize - 1;
    // COMMAND_LINE_SIZE of x86 is 2,048 (arch/x86/include/uapi/asm/setup.h, Linux 7.2).
    if command_line.len() > room.min(2047) {
        return Err(Error::Option(format!(
            "the kernel's command line has {} bytes; 2047 are allowed",
            command_line.len()
        )));
    }
    head.0[COMMAND_LINE as usize..][..command_line.len()].copy_from_slice(command_line.as_bytes());
    Ok(head.0)
}

/// As Bochs' BIOS answers INT 15h, E820h (bios/rombios.c, 3.0), for memory below 4 GiB: start, end, kind.
fn memory_map(options: &Options) -> [(u64, u64, u32); 6] {
    let end = u64::from(options.memory_mib) << 20;
    [
        (0, 0x9f000, RAM),
        (0x9f000, 0xa0000, RESERVED),
        (0xe8000, 0x10_0000, RESERVED),
        (0x10_0000, end - BIOS_TABLES_BYTES, RAM),
        (end - BIOS_TABLES_BYTES, end, ACPI),
        (0xfffc_0000, 0x1_0000_0000, RESERVED),
    ]
}

struct Head(Vec<u8>);

impl Head {
    /// Little-endian numbers of `bytes` each, one after the other.
    fn put(&mut self, offset: u32, numbers: &[u64], bytes: usize) {
        for (place, number) in numbers.iter().enumerate() {
            let at = offset as usize + place * bytes;
            self.0[at..at + bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
        }
    }
}

#[cfg(test)]
mod tests;
