// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files in memory stand for the maps. Who answers offers is a scheduler: crates/agent/tests/steerer/pv_pages.rs.
use std::{
    fs::File,
    os::{fd::FromRawFd, unix::fs::FileExt},
};

use super::*;

fn file(bytes: usize) -> File {
    // SAFETY: a constant name; the descriptor is new and nobody else's.
    let file = unsafe {
        let fd = libc::memfd_create(c"map".as_ptr(), 0);
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        File::from_raw_fd(fd)
    };
    file.set_len(bytes as u64).expect("there is room");
    file
}

fn maps() -> (Arc<PvPages>, File) {
    let pages = file(OWNERS * PAGE_BYTES);
    let copy = pages.try_clone().expect("a descriptor is left");
    let owners = file(OWNERS * size_of::<u64>()).into();
    let of = PvPages::new(pages.into(), &owners).expect("it can be mapped");
    (Arc::new(of), copy)
}

/// So many pages of private anonymous memory, never unmapped.
fn memory(pages: usize) -> *mut libc::c_void {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe { libc::mmap(ptr::null_mut(), pages * PAGE_BYTES, access, kind, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    at
}

fn write(at: *mut libc::c_void, value: u8) {
    // SAFETY: the first byte of memory(), which is writable and nobody else's.
    unsafe { at.cast::<u8>().write_volatile(value) };
}

fn read(at: *mut libc::c_void) -> u8 {
    // SAFETY: as above.
    unsafe { at.cast::<u8>().read_volatile() }
}

#[test]
fn every_vcpu_has_its_pv_page_in_a_page() {
    assert_eq!([1, 32, 33, 64].map(pages_of), [1, 1, 2, 2]);
    let bytes = pages_of(abi::UNSPIN_GUEST_VCPUS_MAX) * PAGE_BYTES;
    // Nothing else lies there (abi/guest/memory.h).
    assert!(abi::UNSPIN_GUEST_PV_PAGE as usize + bytes <= abi::UNSPIN_GUEST_IMAGE as usize);
    let statistics = abi::UNSPIN_GUEST_VCPUS_MAX * abi::UNSPIN_GUEST_STATISTICS_STRIDE;
    assert!(abi::UNSPIN_GUEST_PV_PAGE >= abi::UNSPIN_GUEST_STATISTICS + statistics);
}

#[test]
fn where_nobody_answers_memory_stays_as_it_is() {
    let (of, _) = maps();
    let at = memory(2);
    write(at, 7);
    // SAFETY: two pages of memory(), used by nobody else.
    let put = unsafe { of.put(at, 2) }.expect("nothing fails");
    assert!(put.is_none());
    assert_eq!((read(at), of.missed()), (7, 1));
}

#[test]
fn a_page_is_cleared_shared_and_taken_out_again() {
    let (of, file) = maps();
    let at = memory(1);
    let place = 3 * PAGE_BYTES as u64;
    // What another VM left there.
    file.write_at(&[5; 8], place).expect("it is long enough");
    let page = Page {
        of,
        number: 3,
        address: at,
    };
    page.map().expect("it can be mapped");
    assert_eq!(read(at), 0);
    write(at, 9);
    let mut found = [0; 8];
    file.read_at(&mut found, place).expect("it is long enough");
    assert_eq!(found, [9, 0, 0, 0, 0, 0, 0, 0]);
    drop(page);
    assert_eq!(read(at), 0);
    write(at, 1);
    file.read_at(&mut found, place).expect("it is long enough");
    assert_eq!(found[0], 9);
}
