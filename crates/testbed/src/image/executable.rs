// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a static executable the testbed needs. An emulated kernel unpacks the initramfs byte by byte, and nine tenths
//! of a build for development are tables for debuggers.

use object::{
    LittleEndian, elf,
    pod::from_bytes_mut,
    read::elf::{FileHeader, ProgramHeader},
};

type Header = elf::FileHeader64<LittleEndian>;

/// The file up to the end of what is mapped when it is executed, without section headers; they and what they describe
/// serve linkers and debuggers only.
///
/// None when it names a program interpreter, loads nothing, is cut off, or is no 64-bit little-endian ELF file at all.
pub fn loaded_part(mut file: Vec<u8>) -> Option<Vec<u8>> {
    let end = end_of_loaded(&file)?;
    file.truncate(end.max(size_of::<Header>()));
    let (header, _) = from_bytes_mut::<Header>(&mut file).ok()?;
    header.e_shoff.set(LittleEndian, 0);
    for field in [
        &mut header.e_shentsize,
        &mut header.e_shnum,
        &mut header.e_shstrndx,
    ] {
        field.set(LittleEndian, 0);
    }
    Some(file)
}

/// Where that is: a place in the file, behind its program headers.
fn end_of_loaded(file: &[u8]) -> Option<usize> {
    let header = Header::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let programs = header.program_headers(endian, file).ok()?;
    let mut end = header.e_phoff(endian) + size_of_val(programs) as u64;
    let mut loads = false;
    for program in programs {
        match program.p_type(endian) {
            elf::PT_INTERP => return None,
            elf::PT_LOAD => {
                loads = true;
                let (at, bytes) = program.file_range(endian);
                end = end.max(at.checked_add(bytes)?);
            }
            _ => {}
        }
    }
    usize::try_from(end)
        .ok()
        .filter(|end| loads && *end <= file.len())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The smallest file whose program headers have the given types; each maps the whole of itself, and then comes what
    /// only a debugger reads.
    pub fn elf(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[32] = 64; // The program headers follow the file header,
        bytes[54] = 56; // 56 bytes each.
        bytes[56] = types.len() as u8;
        let mapped = 64 + 56 * types.len() as u64 + 8;
        for kind in types {
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&[0; 28]);
            bytes.extend_from_slice(&mapped.to_le_bytes());
            bytes.extend_from_slice(&[0; 16]);
        }
        bytes.extend_from_slice(b"mapped..");
        for field in [40, 58, 60, 62] {
            bytes[field] = 1;
        }
        bytes.extend_from_slice(b"for debuggers");
        bytes
    }

    #[test]
    fn what_is_mapped_stays_and_nothing_else() {
        let file = elf(&[1, 2]);
        let part = loaded_part(file.clone()).expect("it is static");
        assert_eq!(part.len(), file.len() - b"for debuggers".len());
        assert!(part.ends_with(b"mapped.."));
        assert_eq!(part[..40], file[..40]);
        assert_eq!((&part[40..48], &part[58..64]), (&[0; 8][..], &[0; 6][..]));
        assert_eq!(loaded_part(part.clone()), Some(part));
    }

    #[test]
    fn others_are_refused() {
        let file = elf(&[1]);
        for (what, bytes) in [
            ("it needs a loader", elf(&[1, 3])),
            ("nothing is loaded", elf(&[2])),
            ("cut off", file[..file.len() - 20].to_vec()),
            ("a header only", file[..64].to_vec()),
            ("a piece of a header", file[..20].to_vec()),
            ("empty", Vec::new()),
            ("a script", b"#!/bin/sh\n".to_vec()),
        ] {
            assert_eq!(loaded_part(bytes), None, "{what}");
        }
    }

    #[test]
    fn numbers_that_wrap_are_refused() {
        for at in [32, 64 + 8, 64 + 32] {
            let mut file = elf(&[1]);
            file[at..at + 8].fill(0xff);
            assert_eq!(loaded_part(file), None, "{at}");
        }
    }
}
