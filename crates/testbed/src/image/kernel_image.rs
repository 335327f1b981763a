// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks the kernel on the host, once, so that no boot has to do it in the emulator.
//!
//! A bzImage holds the compressed vmlinux at a place its header names (Documentation/arch/x86/boot.rst, protocol 2.08 or
//! later: `payload_offset`, `payload_length`); QEMU boots a vmlinux through its PVH entry. The README has what it saves.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use crate::{error::Error, image::unpacked};

/// The header's fields (same source).
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
const VERSION_WITH_PAYLOAD: u32 = 0x208;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A kernel's build appends the unpacked size to the payload (`size_append` in scripts/Makefile.lib, Linux 7.2).
const SIZE_BYTES: usize = 4;
/// More than this no vmlinux has: a limit for a file that is none.
const MAXIMUM_BYTES: u64 = 1 << 30;

/// The file to boot: the unpacked kernel beside `vmlinuz`, made when it is not there or older.
///
/// A kernel compressed other than with zstd is booted as it is; the choice depends on the file alone, so that
/// deterministic runs stay equal.
///
/// # Errors
/// [`Error::File`] when the cache cannot be read or written, [`Error::Option`] for a file that is no kernel.
pub fn bootable(vmlinuz: &Path) -> Result<PathBuf, Error> {
    unpacked::beside(vmlinuz, vmlinuz.with_file_name("vmlinux"), |image| {
        let Some(payload) = payload(image) else {
            let what = format!("{} is no Linux kernel (bzImage)", vmlinuz.display());
            return Err(Error::Option(format!("{what}; run `make setup`")));
        };
        if !payload.starts_with(&ZSTD_MAGIC) {
            return Ok(None);
        }
        unpack(payload)
            .map(Some)
            .map_err(|error| unpacked::broken(vmlinuz, &error))
    })
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize, bytes: usize| -> Option<u32> {
        let mut value = [0; 4];
        value[..bytes].copy_from_slice(image.get(at..at + bytes)?);
        Some(u32::from_le_bytes(value))
    };
    if image.get(MAGIC..MAGIC + 4)? != b"HdrS" || number(VERSION, 2)? < VERSION_WITH_PAYLOAD {
        return None;
    }
    let protected_mode = (number(SETUP_SECTORS, 1)?.max(1) as usize + 1) * 512;
    let start = protected_mode.checked_add(number(PAYLOAD_OFFSET, 4)? as usize)?;
    let end = start.checked_add(number(PAYLOAD_LENGTH, 4)? as usize)?;
    image.get(start..end.checked_sub(SIZE_BYTES)?)
}

fn unpack(payload: &[u8]) -> std::io::Result<Vec<u8>> {
    let broken = |error: &dyn std::fmt::Display| {
        std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string())
    };
    let decoder =
        ruzstd::decoding::StreamingDecoder::new(payload).map_err(|error| broken(&error))?;
    let mut unpacked = Vec::new();
    decoder.take(MAXIMUM_BYTES).read_to_end(&mut unpacked)?;
    if !unpacked.starts_with(b"\x7fELF") {
        return Err(broken(&"what it holds is no ELF file"));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bzImage of two sectors whose payload is `payload`.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[SETUP_SECTORS] = 1;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[VERSION..VERSION + 2].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&16_u32.to_le_bytes());
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4]
            .copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        image.extend_from_slice(&[0; 16]);
        image.extend_from_slice(payload);
        image.extend_from_slice(&[0; 4]);
        image
    }

    fn packed(contents: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(contents, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn a_kernel_is_unpacked_once_and_again_when_it_changes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let vmlinuz = folder.path().join("vmlinuz");
        std::fs::write(&vmlinuz, image(&packed(b"\x7fELF first"))).expect("file");
        let vmlinux = bootable(&vmlinuz).expect("a kernel");
        assert_eq!(std::fs::read(&vmlinux).expect("there"), b"\x7fELF first");
        std::fs::write(&vmlinux, b"kept").expect("file");
        assert_eq!(
            std::fs::read(bootable(&vmlinuz).expect("a kernel")).expect("there"),
            b"kept"
        );
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::write(&vmlinuz, image(&packed(b"\x7fELF second"))).expect("file");
        std::fs::File::options()
            .append(true)
            .open(&vmlinuz)
            .and_then(|file| file.set_modified(later))
            .expect("time");
        assert_eq!(
            std::fs::read(bootable(&vmlinuz).expect("a kernel")).expect("there"),
            b"\x7fELF second"
        );
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("there").count(),
            2,
            "nothing temporary is left"
        );
    }

    #[test]
    fn another_compression_is_booted_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let vmlinuz = folder.path().join("vmlinuz");
        std::fs::write(&vmlinuz, image(b"\xfd7zXZ\0 or whatever")).expect("file");
        assert_eq!(bootable(&vmlinuz).expect("a kernel"), vmlinuz);
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let vmlinuz = folder.path().join("vmlinuz");
        let mut too_long = image(&packed(b"\x7fELF"));
        too_long.truncate(1050);
        let mut cut = packed(&[7; 10_000]);
        cut.truncate(cut.len() / 2);
        for contents in [
            Vec::new(),
            b"#!/bin/sh".to_vec(),
            vec![0; 4096],
            too_long,
            image(&cut),
            image(&packed(b"text")),
        ] {
            std::fs::write(&vmlinuz, contents).expect("file");
            bootable(&vmlinuz).expect_err("no kernel");
        }
        assert!(!folder.path().join("vmlinux").exists());
    }
}
