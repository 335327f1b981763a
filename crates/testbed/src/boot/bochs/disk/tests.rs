// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the loader and the kernel will read.

use std::io::Write;

use super::*;

/// An ELF file with these PT_LOAD segments (offset, address, bytes) and the note that names the entry, if any.
fn elf(segments: &[(u64, u64, u64)], entry: Option<u32>) -> Vec<u8> {
    let note_at = 0x800_u64;
    let mut file = vec![0_u8; 0x1000];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &2_u16.to_le_bytes());
    put(18, &62_u16.to_le_bytes());
    put(20, &1_u32.to_le_bytes());
    put(32, &64_u64.to_le_bytes());
    put(52, &64_u16.to_le_bytes());
    put(54, &56_u16.to_le_bytes());
    put(56, &(segments.len() as u16 + 1).to_le_bytes());
    let mut program = |index: usize, kind: u32, offset: u64, address: u64, bytes: u64| {
        let at = 64 + 56 * index;
        put(at, &kind.to_le_bytes());
        for (place, value) in [offset, address, address, bytes, bytes, 4]
            .iter()
            .enumerate()
        {
            put(at + 8 + 8 * place, &value.to_le_bytes());
        }
    };
    for (index, &(offset, address, bytes)) in segments.iter().enumerate() {
        program(index, PT_LOAD, offset, address, bytes);
    }
    program(segments.len(), 4, note_at, 0, 20);
    let note_at = note_at as usize;
    put(note_at, &4_u32.to_le_bytes());
    put(note_at + 4, &4_u32.to_le_bytes());
    let kind = entry.map_or(1, |_| XEN_ELFNOTE_PHYS32_ENTRY);
    put(note_at + 8, &kind.to_le_bytes());
    put(note_at + 12, b"Xen\0");
    put(note_at + 16, &entry.unwrap_or(0).to_le_bytes());
    file
}

fn word(bytes: &[u8], at: u32) -> u32 {
    let at = at as usize;
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[test]
fn the_kernels_segments_go_where_they_belong() {
    let file = elf(&[(0x400, 0x100_0000, 0x300)], Some(0x100_0140));
    let (entry, loads) = kernel_loads(&file).expect("a kernel");
    assert_eq!(entry, 0x100_0140);
    let load = Load {
        first_sector: (HEAD_BYTES as u64 + 0x400) / 512,
        sectors: 2,
        address: 0x100_0000,
    };
    assert_eq!(loads, [load]);
}

#[test]
fn what_cannot_boot_is_refused_with_the_reason() {
    for (file, said) in [
        (b"not a kernel".to_vec(), "zstd"),
        (elf(&[(0x400, 0x100_0000, 0x300)], None), "no PVH entry"),
        (elf(&[(0x401, 0x100_0000, 1)], Some(1)), "at byte 1025"),
        (elf(&[(0x400, 0x100_0000, 0x2000)], Some(1)), "at byte 1024"),
        (elf(&[(0x400, 0x7ff_ff00, 0x300)], Some(1)), "belongs at"),
        (elf(&[(0x400, 0x9_0000, 0x300)], Some(1)), "belongs at"),
    ] {
        let why = kernel_loads(&file).expect_err("refused");
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn the_disk_has_the_head_the_kernel_and_the_initramfs() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = folder.path().join("vmlinux");
    let kernel_file = elf(&[(0x400, 0x100_0000, 0x300)], Some(0x100_0140));
    std::fs::write(&kernel, &kernel_file).expect("room");
    let mut initramfs = tempfile::tempfile().expect("a file");
    initramfs.write_all(&[7; 700]).expect("room");
    let mut disk = tempfile::tempfile().expect("a file");
    let options = Options::new("/cache".into());
    write(&mut disk, &options, &kernel, &mut initramfs, "a=1 b").expect("a disk");
    disk.rewind().expect("a file");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut disk, &mut bytes).expect("a file");
    assert_eq!(bytes.len() as u64 % CYLINDER_BYTES, 0);
    assert_eq!((word(&bytes, 0), word(&bytes, ENTRY)), (MAGIC, 0x100_0140));
    // Two rows and the row of zeros.
    let rows: Vec<u32> = (0..9)
        .map(|place| word(&bytes, TABLE + 4 * place))
        .collect();
    assert_eq!(rows, [18, 2, 0x100_0000, 24, 2, 0x800_0000, 0, 0, 0]);
    assert_eq!(bytes[HEAD_BYTES..HEAD_BYTES + 0x1000], kernel_file);
    assert_eq!(bytes[24 * 512..24 * 512 + 700], [7; 700]);
    assert_eq!(word(&bytes, START_INFO), START_INFO_MAGIC);
    assert_eq!(word(&bytes, START_INFO + 24), HEAD_ADDRESS + COMMAND_LINE);
    assert_eq!(word(&bytes, START_INFO + 48), 6);
    assert_eq!(word(&bytes, MODULES + 8), 700);
    assert!(bytes[COMMAND_LINE as usize..].starts_with(b"a=1 b\0"));
}

#[test]
fn memory_is_one_piece_without_the_firmwares_tables() {
    let mut options = Options::new("/cache".into());
    options.memory_mib = 1024;
    let map = memory_map(&options);
    assert!(map.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    let ram: u64 = map
        .iter()
        .filter(|row| row.2 == RAM)
        .map(|row| row.1 - row.0)
        .sum();
    assert_eq!(ram, (1024 << 20) - (1 << 20) - (128 << 10) + 0x9f000);
}

#[test]
fn too_little_memory_and_too_long_a_command_line_are_refused() {
    let mut options = Options::new("/cache".into());
    options.memory_mib = 512;
    check_memory(&options, 50 << 20).expect("it fits");
    let refused = check_memory(&options, 200 << 20).expect_err("too large");
    assert!(
        refused.to_string().contains("--memory-mib 721"),
        "{refused}"
    );
    let long = "x".repeat(2048);
    let refused = head(&options, 0, &[], 0, &long).expect_err("too long");
    assert!(refused.to_string().contains("2048 bytes"), "{refused}");
}
