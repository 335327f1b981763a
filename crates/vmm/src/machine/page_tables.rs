// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page tables that the guest starts with: guest memory one to one, in pages of 2 MiB.
//!
//! Formats: AMD64 Architecture Programmer's Manual volume 2, 5.3 (long-mode page translation).
use unspin_abi as abi;

/// Bytes that one entry of a page directory maps.
const LARGE_PAGE_BYTES: u64 = 2 << 20;

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;

const TABLE_BYTES: u64 = 4096;

/// Guest physical addresses of the three tables: PML4, page directory pointers, page directory.
const TABLE_ADDRESSES: [u64; 3] = [
    abi::UNSPIN_GUEST_PAGE_TABLES as u64,
    abi::UNSPIN_GUEST_PAGE_TABLES as u64 + TABLE_BYTES,
    abi::UNSPIN_GUEST_PAGE_TABLES as u64 + 2 * TABLE_BYTES,
];

/// Every entry that is not zero, as (guest physical address, value). Ten words: writing only these keeps the rest
/// of guest memory untouched.
pub fn entries() -> Vec<(u64, u64)> {
    // The upper levels allow everything; the page directory decides.
    let upper = PRESENT | WRITABLE | USER | ACCESSED;
    let mut entries = vec![
        (TABLE_ADDRESSES[0], TABLE_ADDRESSES[1] | upper),
        (TABLE_ADDRESSES[1], TABLE_ADDRESSES[2] | upper),
    ];
    let pages = u64::from(abi::UNSPIN_GUEST_MEMORY_BYTES) / LARGE_PAGE_BYTES;
    entries.extend((0..pages).map(|page| {
        let address = page * LARGE_PAGE_BYTES;
        (TABLE_ADDRESSES[2] + 8 * page, address | rights(address))
    }));
    entries
}

/// Rights of the large page at that guest physical address. Text and data share a page, so only pages that hold no
/// text (parameters, statistics, log) are closed to execution. Accessed and dirty are set: no walk writes to them.
fn rights(address: u64) -> u64 {
    let common = PRESENT | WRITABLE | LARGE | ACCESSED | DIRTY;
    match address {
        _ if address == u64::from(abi::UNSPIN_GUEST_IMAGE) => common,
        _ if address == u64::from(abi::UNSPIN_GUEST_USER) => common | USER,
        _ => common | NO_EXECUTE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const ENTRIES: u64 = 512;

    /// What the processor does with a linear address: (physical address, user, executable), or `None` for a fault.
    fn walk(memory: &BTreeMap<u64, u64>, linear: u64) -> Option<(u64, bool, bool)> {
        let mut table = u64::from(abi::UNSPIN_GUEST_PAGE_TABLES);
        let (mut user, mut executable) = (true, true);
        for shift in [39, 30, 21] {
            let index = (linear >> shift) & (ENTRIES - 1);
            let entry = *memory.get(&(table + 8 * index))?;
            assert!(entry & PRESENT != 0);
            user &= entry & USER != 0;
            executable &= entry & NO_EXECUTE == 0;
            table = entry & 0x000f_ffff_ffff_f000;
            if shift == 21 {
                assert!(entry & LARGE != 0);
                return Some((table | (linear & (LARGE_PAGE_BYTES - 1)), user, executable));
            }
            assert!(entry & LARGE == 0);
        }
        None
    }

    #[test]
    fn all_guest_memory_is_mapped_one_to_one_and_nothing_else() {
        let memory: BTreeMap<u64, u64> = entries().into_iter().collect();
        let end = u64::from(abi::UNSPIN_GUEST_MEMORY_BYTES);
        for linear in (0..end).step_by(4096) {
            assert_eq!(walk(&memory, linear).map(|(to, ..)| to), Some(linear));
        }
        for linear in [end, end + 4096, 1 << 30, 1 << 39, !4095] {
            assert_eq!(walk(&memory, linear), None, "{linear:#x}");
        }
    }

    #[test]
    fn only_the_user_page_is_open_to_cpl_3_and_only_text_pages_execute() {
        let memory: BTreeMap<u64, u64> = entries().into_iter().collect();
        for linear in (0..u64::from(abi::UNSPIN_GUEST_MEMORY_BYTES)).step_by(4096) {
            let page = (linear & !(LARGE_PAGE_BYTES - 1)) as u32;
            let (_, user, executable) = walk(&memory, linear).expect("it is mapped");
            assert_eq!(user, page == abi::UNSPIN_GUEST_USER, "{linear:#x}");
            let text = page == abi::UNSPIN_GUEST_USER || page == abi::UNSPIN_GUEST_IMAGE;
            assert_eq!(executable, text, "{linear:#x}");
        }
    }

    #[test]
    fn the_tables_end_before_the_parameters() {
        let last = entries().iter().map(|(address, _)| *address).max();
        assert!(last.expect("there are entries") < u64::from(abi::UNSPIN_GUEST_PARAMETERS));
    }
}
