// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of one VM: one anonymous region, touched as little as possible, and bounds-checked views of what the
//! guest keeps in it (abi/guest/memory.h). Nothing that the guest writes is trusted.
use std::{
    io,
    io::Cursor,
    mem::size_of,
    sync::{Arc, atomic::Ordering},
};

use linux_loader::loader::{KernelLoader, elf::Elf};
use unspin_abi as abi;
use vm_memory::{Bytes, GuestAddress, GuestMemory, GuestMemoryMmap};

use crate::{
    Error,
    machine::page_tables,
    pv_pages::{self, PvPages},
};

/// The micro guest, built from guest/ by build.rs.
pub static GUEST_IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.elf"));

/// Words of 8 bytes in `unspin_guest_statistics`: the copy below goes word by word.
const STATISTICS_WORDS: usize = size_of::<abi::unspin_guest_statistics>() / 8;
const _: () = assert!(size_of::<abi::unspin_guest_statistics>() % 8 == 0);
const WAIT_WORDS: usize = size_of::<abi::unspin_guest_wait>() / 8;
const _: () = assert!(size_of::<abi::unspin_guest_wait>() % 8 == 0);

/// The memory of one VM.
pub struct Memory {
    /// Dropped before the region that they are a part of.
    pv_pages: Vec<pv_pages::Page>,
    map: GuestMemoryMmap<()>,
}

impl Memory {
    /// Maps UNSPIN_GUEST_MEMORY_BYTES, none of them touched. Small pages: a huge page would make 2 MiB of each one
    /// that the guest uses.
    pub fn new() -> io::Result<Memory> {
        let bytes = abi::UNSPIN_GUEST_MEMORY_BYTES as usize;
        let map = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), bytes)])
            .map_err(|error| io::Error::other(error.to_string()))?;
        let memory = Memory {
            pv_pages: Vec::new(),
            map,
        };
        // SAFETY: the range is exactly our own mapping; advice changes no contents.
        let advised = unsafe { libc::madvise(memory.host_address(), bytes, libc::MADV_NOHUGEPAGE) };
        // EINVAL: a kernel without huge pages has nothing to switch off.
        if advised != 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            return Err(io::Error::last_os_error());
        }
        // A child (unspin-guard) has no use for it: its copy would have each page of a running guest copied when it is written.
        // SAFETY: as above.
        match unsafe { libc::madvise(memory.host_address(), bytes, libc::MADV_DONTFORK) } {
            0 => Ok(memory),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Where the region lies in this process, for KVM; valid as long as `self`.
    pub fn host_address(&self) -> *mut libc::c_void {
        self.map
            .get_host_address(GuestAddress(0))
            .expect("the region begins at 0")
            .cast()
    }

    /// Puts pages of the host's where the pv pages of that many vCPUs lie, if it has some left. Before KVM knows the region.
    pub fn take_pv_pages(&mut self, of: &Arc<PvPages>, vcpus: u32) -> io::Result<()> {
        let first = GuestAddress(abi::UNSPIN_GUEST_PV_PAGE.into());
        let address = self.map.get_host_address(first).expect("inside the region");
        // SAFETY: pages of the region, which is private anonymous memory; they are the vCPUs' pv pages and nothing else
        // (abi/guest/memory.h), no guest runs yet, and the pages are dropped before the region.
        let taken = unsafe { of.put(address.cast(), pv_pages::pages_of(vcpus)) };
        self.pv_pages = taken?.unwrap_or_default();
        Ok(())
    }

    /// Writes page tables, an image ([`GUEST_IMAGE`], mostly) and its parameters; returns the address of the first
    /// instruction.
    pub fn load(
        &self,
        image: &[u8],
        parameters: &abi::unspin_guest_parameters,
    ) -> Result<u64, Error> {
        for (address, value) in page_tables::entries() {
            self.store(value, address);
        }
        self.write_parameters(parameters);
        let loaded = Elf::load(&self.map, None, &mut Cursor::new(image), None)
            .map_err(|error| Error::Image(error.to_string()))?;
        if loaded.kernel_end > u64::from(abi::UNSPIN_GUEST_LOG) {
            return Err(Error::Image(format!(
                "it reaches {:#x}, into the log",
                loaded.kernel_end
            )));
        }
        Ok(loaded.kernel_load.0)
    }

    fn write_parameters(&self, parameters: &abi::unspin_guest_parameters) {
        // SAFETY: a live reference to a repr(C) struct of integers whose padding-free size abi/guest/memory.h asserts.
        let bytes = unsafe {
            std::slice::from_raw_parts(
                std::ptr::from_ref(parameters).cast::<u8>(),
                size_of::<abi::unspin_guest_parameters>(),
            )
        };
        self.map
            .write_slice(bytes, GuestAddress(abi::UNSPIN_GUEST_PARAMETERS.into()))
            .expect("the parameters lie inside the region");
    }

    /// Sets `stop` of the parameters: every vCPU finishes its iteration.
    pub fn request_stop(&self) {
        let offset = std::mem::offset_of!(abi::unspin_guest_parameters, stop) as u64;
        let address = u64::from(abi::UNSPIN_GUEST_PARAMETERS) + offset;
        self.map
            .store(1u32, GuestAddress(address), Ordering::Release)
            .expect("the parameters lie inside the region");
    }

    /// A copy of a vCPU's statistics (0..64), also while the guest writes them: every word is read whole.
    pub fn statistics(&self, vcpu: u32) -> abi::unspin_guest_statistics {
        let mut words = [0u64; STATISTICS_WORDS];
        self.read_words(statistics_address(vcpu), &mut words);
        // SAFETY: same size (asserted above), and every bit pattern is a valid struct of integers.
        unsafe { std::mem::transmute(words) }
    }

    /// The TSC at a vCPU's first instruction; 0 before it.
    pub fn first_instruction_tsc(&self, vcpu: u32) -> u64 {
        let offset = std::mem::offset_of!(abi::unspin_guest_statistics, first_instruction_tsc);
        self.load_word(statistics_address(vcpu) + offset as u64)
    }

    /// A vCPU's waits, `log_records` being what the parameters say: at most that many, only complete ones, never
    /// beyond the log, whatever the guest claims.
    pub fn waits(&self, vcpu: u32, log_records: u32) -> Vec<abi::unspin_guest_wait> {
        let claimed = self.statistics(vcpu).log_kept;
        let records = claimed.min(u64::from(log_records));
        (0..records)
            .map_while(|record| self.wait(vcpu, log_records, record))
            .filter(|wait| wait.kind != 0)
            .collect()
    }

    /// One record of the log; `None` outside of it.
    fn wait(&self, vcpu: u32, log_records: u32, record: u64) -> Option<abi::unspin_guest_wait> {
        let bytes = size_of::<abi::unspin_guest_wait>() as u64;
        let index = u64::from(vcpu) * u64::from(log_records) + record;
        let offset = index.checked_mul(bytes)?;
        if offset + bytes > u64::from(abi::UNSPIN_GUEST_LOG_BYTES) {
            return None;
        }
        let mut words = [0u64; WAIT_WORDS];
        self.read_words(u64::from(abi::UNSPIN_GUEST_LOG) + offset, &mut words);
        // SAFETY: same size (asserted above), and every bit pattern is a valid struct of integers.
        Some(unsafe { std::mem::transmute::<[u64; WAIT_WORDS], abi::unspin_guest_wait>(words) })
    }

    /// Bytes of the region that are in memory now.
    pub fn resident_bytes(&self) -> u64 {
        const PAGE: usize = 4096;
        let bytes = abi::UNSPIN_GUEST_MEMORY_BYTES as usize;
        let mut pages = vec![0u8; bytes / PAGE];
        // SAFETY: the range is our own page-aligned mapping and `pages` has one byte for each of its pages.
        let read = unsafe { libc::mincore(self.host_address(), bytes, pages.as_mut_ptr()) };
        assert_eq!(read, 0, "mincore of a mapping of our own");
        (pages.iter().filter(|page| **page & 1 != 0).count() * PAGE) as u64
    }

    fn read_words(&self, address: u64, words: &mut [u64]) {
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.load_word(address + 8 * index as u64);
        }
    }

    /// The aligned word of 8 bytes at that address inside the region.
    pub fn load_word(&self, address: u64) -> u64 {
        self.map
            .load(GuestAddress(address), Ordering::Acquire)
            .expect("an aligned address inside the region")
    }

    /// Stores it there.
    pub fn store(&self, value: u64, address: u64) {
        self.map
            .store(value, GuestAddress(address), Ordering::Release)
            .expect("an aligned address inside the region");
    }
}

/// Guest physical address of a vCPU's statistics.
pub fn statistics_address(vcpu: u32) -> u64 {
    assert!(vcpu < abi::UNSPIN_GUEST_VCPUS_MAX);
    u64::from(abi::UNSPIN_GUEST_STATISTICS)
        + u64::from(vcpu) * u64::from(abi::UNSPIN_GUEST_STATISTICS_STRIDE)
}

#[cfg(test)]
mod tests;
