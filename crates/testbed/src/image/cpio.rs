// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a newc cpio archive, the format the kernel unpacks as its initramfs.
//!
//! Source: Documentation/driver-api/early-userspace/buffer-format.rst (Linux 7.2). The same entries in the same order
//! give the same bytes: time stamps are zero, owners are root, inode numbers count up from 1.

/// The type bits of `st_mode` (POSIX; Linux `include/uapi/linux/stat.h`).
const DIRECTORY: u32 = 0o040_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const REGULAR: u32 = 0o100_000;
const SYMBOLIC_LINK: u32 = 0o120_000;

/// The largest file the format can hold: sizes are eight hexadecimal digits.
pub const MAXIMUM_FILE_BYTES: usize = u32::MAX as usize;

/// An archive under construction. Paths are given without a leading slash; parents must be added before children.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory with mode 0755.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY | 0o755, (0, 0), &[]);
    }

    /// Adds a regular file; `executable` chooses mode 0755 or 0644.
    ///
    /// # Panics
    /// When `contents` is larger than [`MAXIMUM_FILE_BYTES`]; callers refuse such a file before.
    pub fn file(&mut self, path: &str, contents: &[u8], executable: bool) {
        let permissions = if executable { 0o755 } else { 0o644 };
        self.entry(path, REGULAR | permissions, (0, 0), contents);
    }

    /// Adds a symbolic link to `target`.
    pub fn symbolic_link(&mut self, path: &str, target: &str) {
        self.entry(path, SYMBOLIC_LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device with mode 0600.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE | 0o600, (major, minor), &[]);
    }

    /// Ends the archive and hands out its bytes, a multiple of 512 long as the format asks.
    pub fn finish(mut self) -> Vec<u8> {
        self.entries = 0; // The trailer has inode 0, whatever came before it.
        self.header("TRAILER!!!", 0, 0, (0, 0), 0);
        self.pad(4);
        self.pad(512);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        let length = u32::try_from(contents.len()).expect("a file too large for the cpio format");
        self.entries += 1;
        self.header(path, self.entries, mode, device, length);
        self.bytes.extend_from_slice(contents);
        self.pad(4);
    }

    fn header(&mut self, path: &str, inode: u32, mode: u32, device: (u32, u32), length: u32) {
        let links = if mode & 0o170_000 == DIRECTORY { 2 } else { 1 };
        let name_length = path.len() as u32 + 1; // With its terminating zero.
        self.bytes.extend_from_slice(b"070701");
        // inode mode uid gid links mtime length, device of the file system (2), device of the node (2), name, checksum
        for field in [
            inode,
            mode,
            0,
            0,
            links,
            0,
            length,
            0,
            0,
            device.0,
            device.1,
            name_length,
            0,
        ] {
            self.bytes
                .extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad(4);
    }

    fn pad(&mut self, multiple: usize) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(multiple), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut archive = Archive::new();
        archive.directory("bin");
        archive.file("bin/a", b"hello", true);
        archive.symbolic_link("init", "bin/a");
        archive.character_device("console", 5, 1);
        archive.finish()
    }

    #[test]
    fn the_bytes_are_those_of_gnu_cpio() {
        // Each header is 110 bytes: magic and thirteen fields of eight digits; then name, zero, padding to four.
        #[rustfmt::skip]
        let expected = concat!(
            "070701", "00000001", "000041ED", "00000000", "00000000", "00000002", "00000000", "00000000", "00000000",
            "00000000", "00000000", "00000000", "00000004", "00000000", "bin\0\0\0",
            "070701", "00000002", "000081ED", "00000000", "00000000", "00000001", "00000000", "00000005", "00000000",
            "00000000", "00000000", "00000000", "00000006", "00000000", "bin/a\0", "hello\0\0\0",
            "070701", "00000003", "0000A1FF", "00000000", "00000000", "00000001", "00000000", "00000005", "00000000",
            "00000000", "00000000", "00000000", "00000005", "00000000", "init\0\0", "bin/a\0\0\0",
            "070701", "00000004", "00002180", "00000000", "00000000", "00000001", "00000000", "00000000", "00000000",
            "00000000", "00000005", "00000001", "00000008", "00000000", "console\0\0\0",
            "070701", "00000000", "00000000", "00000000", "00000000", "00000001", "00000000", "00000000", "00000000",
            "00000000", "00000000", "00000000", "0000000B", "00000000", "TRAILER!!!\0\0\0\0",
        );
        let bytes = sample();
        assert_eq!(bytes.len() % 512, 0);
        let (archive, padding) = bytes.split_at(expected.len());
        assert_eq!(String::from_utf8_lossy(archive), expected);
        assert!(padding.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn the_same_entries_give_the_same_bytes() {
        assert_eq!(sample(), sample());
    }

    #[test]
    fn every_header_begins_at_a_multiple_of_four() {
        let bytes = sample();
        let starts: Vec<_> = bytes
            .windows(6)
            .enumerate()
            .filter(|(_, w)| *w == b"070701")
            .map(|(at, _)| at)
            .collect();
        assert_eq!(starts.len(), 5);
        assert!(starts.iter().all(|at| at % 4 == 0), "{starts:?}");
    }
}
