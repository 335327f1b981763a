// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loader of the Intel machine (`option_rom.s`), as the bytes of an option ROM.

use super::disk::{ENTRY, HEAD_ADDRESS, HEAD_BYTES, MAGIC, SECTOR_BYTES, START_INFO, TABLE};

/// Where the BIOS finds it: the area that it searches for option ROMs begins at 0xc8000.
pub const ADDRESS: u32 = 0xd0000;
const BYTES: usize = 512;

std::arch::global_asm!(
    include_str!("option_rom.s"),
    ROM = const ADDRESS,
    HEAD = const HEAD_ADDRESS,
    HEAD_SECTORS = const HEAD_BYTES as u32 / SECTOR_BYTES as u32,
    MAGIC = const MAGIC,
    TABLE = const TABLE,
    START_INFO = const START_INFO,
    ENTRY = const ENTRY,
    options(att_syntax)
);

unsafe extern "C" {
    #[link_name = "unspin_option_rom"]
    static OPTION_ROM: [u8; BYTES];
}

/// Its bytes, whose sum is 0 modulo 256, as the BIOS asks.
pub fn bytes() -> [u8; BYTES] {
    // SAFETY: option_rom.s defines the symbol with exactly 512 bytes in a section that nobody writes.
    let mut bytes = unsafe { OPTION_ROM };
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes[BYTES - 1] = bytes[BYTES - 1].wrapping_sub(sum);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_a_bios_takes_for_an_option_rom() {
        let bytes = bytes();
        assert_eq!(bytes[..3], [0x55, 0xaa, (BYTES / 512) as u8]);
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        assert_eq!(sum, 0);
        // The last byte is the checksum's: no code may reach it.
        assert_eq!(bytes[BYTES - 2], 0);
        const { assert!(ADDRESS >= 0xc8000 && ADDRESS % 2048 == 0) };
    }
}
