// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of the scheduler that is attached, which VMMs put into their guests' memory and threads say in what they hold.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    ptr::{self, NonNull},
};

use unspin_abi::{UNSPIN_THREADS_MAX, unspin_pv_page};

use crate::{Error, SteerError, kernel::load, scheduler};

/// Both, open; they stay when the scheduler goes.
#[derive(Debug)]
pub struct GuestPages {
    /// `guest_pages`: what guests may have mapped.
    pub pages: OwnedFd,
    /// `guest_owners`: whose they are.
    pub owners: OwnedFd,
}

impl GuestPages {
    /// Those of the scheduler that some process of ours has attached.
    ///
    /// # Errors
    /// [`SteerError::NotRunning`], or when the kernel has no descriptor left.
    pub fn of_running() -> Result<GuestPages, SteerError> {
        Ok(GuestPages {
            pages: youngest("guest_pages", size_of::<unspin_pv_page>())?,
            owners: youngest("guest_owners", size_of::<u64>())?,
        })
    }
}

fn youngest(name: &str, size: usize) -> Result<OwnedFd, SteerError> {
    let maps = scheduler::running_maps(name, size);
    let map = maps.last().ok_or(SteerError::NotRunning)?;
    map.as_fd().try_clone_to_owned().map_err(|source| {
        let refused: Error = load::refused(&format!("opening the BPF map {name}"), source.into());
        refused.into()
    })
}

const BYTES: usize = UNSPIN_THREADS_MAX as usize * size_of::<unspin_pv_page>();

/// The map of the scheduler that some process of ours has attached, mapped here; it stays when the scheduler goes.
#[derive(Debug)]
pub struct ThreadPages(NonNull<unspin_pv_page>);

// SAFETY: shared memory that the scheduler and other processes change at any time; who uses it expects that.
unsafe impl Send for ThreadPages {}
// SAFETY: as above.
unsafe impl Sync for ThreadPages {}

impl ThreadPages {
    /// # Errors
    /// [`crate::SteerError::NotRunning`], or when the kernel refuses.
    pub fn of_running() -> Result<ThreadPages, crate::SteerError> {
        let maps = scheduler::running_maps("thread_pages", size_of::<unspin_pv_page>());
        let map = maps.last().ok_or(crate::SteerError::NotRunning)?;
        // SAFETY: a new mapping of a map that was made with BPF_F_MMAPABLE and is that long (bpf/scheduler/process_threads.bpf.h).
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_fd().as_raw_fd(),
                0,
            )
        };
        match NonNull::new(address.cast()) {
            Some(first) if address != libc::MAP_FAILED => Ok(ThreadPages(first)),
            _ => {
                let source = io::Error::last_os_error();
                Err(load::refused("mapping the scheduler's pages of threads", source.into()).into())
            }
        }
    }

    /// `UNSPIN_THREADS_MAX` structs, mapped until this is dropped.
    pub fn first(&self) -> *mut unspin_pv_page {
        self.0.as_ptr()
    }
}

impl Drop for ThreadPages {
    fn drop(&mut self) {
        // SAFETY: mapped in of_running() with that length; nobody may use first() after this is dropped.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES) };
    }
}
