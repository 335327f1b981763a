// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of a scheduler's BPF map in guest memory, for the guest's pv pages to lie in: the VMM's side of `abi/bpf/pv_page_map.h`.
use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    ptr::{self, NonNull},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use unspin_abi as abi;

const PAGE_BYTES: usize = abi::UNSPIN_PV_PAGE_BYTES as usize;
const OWNERS: usize = abi::UNSPIN_PV_PAGES_MAX as usize;

/// What a VM has where its vCPUs' pv pages lie: so many pages from `UNSPIN_GUEST_PV_PAGE` on.
pub fn pages_of(vcpus: u32) -> usize {
    vcpus.div_ceil(abi::UNSPIN_PV_STRUCTS_PER_PAGE) as usize
}

/// The two maps of a running scheduler, open in this process.
#[derive(Debug)]
pub struct PvPages {
    pages: OwnedFd,
    owners: NonNull<AtomicU64>,
    missed: AtomicU32,
}

// SAFETY: `owners` is shared memory that is only read, atomically, and mapped until this is dropped.
unsafe impl Send for PvPages {}
// SAFETY: as above.
unsafe impl Sync for PvPages {}

impl PvPages {
    /// Of the maps `guest_pages` and `guest_owners`.
    ///
    /// # Errors
    /// When `guest_owners` cannot be mapped.
    pub fn new(pages: OwnedFd, owners: &OwnedFd) -> io::Result<PvPages> {
        let (bytes, shared) = (OWNERS * size_of::<u64>(), libc::MAP_SHARED);
        let (owners, read) = (owners.as_raw_fd(), libc::PROT_READ);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let address = unsafe { libc::mmap(ptr::null_mut(), bytes, read, shared, owners, 0) };
        match NonNull::new(address.cast()) {
            Some(owners) if address != libc::MAP_FAILED => Ok(PvPages {
                pages,
                owners,
                missed: AtomicU32::new(0),
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// VMs so far whose pv pages stay in their own memory, because no page was left or the scheduler has gone.
    pub fn missed(&self) -> u32 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Puts so many pages of the map, cleared, in place of what is mapped at `address`. `None`: they are not to be had.
    ///
    /// # Errors
    /// When one cannot be mapped. Whatever is returned, all pages there can be used.
    ///
    /// # Safety
    /// `address` and so many pages from there are private anonymous memory of the caller's, page-aligned, that nobody
    /// looks at now and that stays mapped until the [`Page`]s are dropped.
    pub(crate) unsafe fn put(
        self: &Arc<Self>,
        address: *mut libc::c_void,
        count: usize,
    ) -> io::Result<Option<Vec<Page>>> {
        let mut pages = Vec::new();
        for index in 0..count {
            let Some(page) = self.take(address.wrapping_byte_add(index * PAGE_BYTES))? else {
                self.missed.fetch_add(1, Ordering::Relaxed);
                return Ok(None);
            };
            page.map()?;
            pages.push(page);
        }
        Ok(Some(pages))
    }

    /// Offers one page after another to that address until one is ours.
    fn take(self: &Arc<Self>, address: *mut libc::c_void) -> io::Result<Option<Page>> {
        let nonce = nonce()?;
        Ok((0..OWNERS).find_map(|number| {
            say(abi::UNSPIN_PRCTL_OFFER_PAGE, number, address, nonce);
            (self.owner(number) as u32 == nonce).then(|| Page {
                of: Arc::clone(self),
                number,
                address,
            })
        }))
    }

    fn owner(&self, number: usize) -> u64 {
        assert!(number < OWNERS);
        // SAFETY: inside the mapping, which has OWNERS words and lives as long as `self`.
        unsafe { self.owners.add(number).as_ref() }.load(Ordering::Acquire)
    }
}

impl Drop for PvPages {
    fn drop(&mut self) {
        // SAFETY: mapped in new() with that length; no reference into it outlives owner().
        unsafe { libc::munmap(self.owners.as_ptr().cast(), OWNERS * size_of::<u64>()) };
    }
}

/// A page of the map that is this process's. Dropped, its place is ordinary memory again and the page anybody's.
#[derive(Debug)]
pub struct Page {
    of: Arc<PvPages>,
    number: usize,
    address: *mut libc::c_void,
}

// SAFETY: the address is only handed to the kernel.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Puts it in its place and clears it: another VM may have had it.
    fn map(&self) -> io::Result<()> {
        let (pages, offset) = (self.of.pages.as_raw_fd(), self.number * PAGE_BYTES);
        self.replace(libc::MAP_SHARED, pages, offset as libc::off_t)?;
        // SAFETY: the page mapped just now, writable; nobody else uses it (abi/bpf/pv_page_map.h).
        unsafe { ptr::write_bytes(self.address.cast::<u8>(), 0, PAGE_BYTES) };
        Ok(())
    }

    fn replace(&self, kind: libc::c_int, file: libc::c_int, offset: libc::off_t) -> io::Result<()> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, kind | libc::MAP_FIXED);
        // SAFETY: one page of memory that put()'s caller gave for this, in which no Rust object lies.
        let at = unsafe { libc::mmap(self.address, PAGE_BYTES, access, kind, file, offset) };
        match at == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(()),
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // A page that could not be taken out of the guest's memory stays this process's.
        if self
            .replace(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
            .is_ok()
        {
            say(abi::UNSPIN_PRCTL_RETURN_PAGE, self.number, self.address, 0);
        }
    }
}

/// To the scheduler; the kernel knows no such option, and its answer says nothing.
fn say(option: u32, number: usize, address: *mut libc::c_void, nonce: u32) {
    // SAFETY: an option unknown to the kernel, which looks at no argument of it.
    unsafe {
        libc::prctl(
            option as libc::c_int,
            number as libc::c_ulong,
            address as libc::c_ulong,
            libc::c_ulong::from(nonce),
        )
    };
}

/// Above 0, and no other offer's: process numbers alone would do where all VMMs see the same ones, which containers do not.
fn nonce() -> io::Result<u32> {
    let mut nonce = 0u32;
    // SAFETY: writes 4 bytes into `nonce`.
    let got = unsafe { libc::getrandom((&raw mut nonce).cast(), size_of::<u32>(), 0) };
    match got == size_of::<u32>() as isize {
        true => Ok(nonce.max(1)),
        false => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
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
}
