// SPDX-License-Identifier: MIT OR Apache-2.0
//! The maps of the running scheduler of which a VMM can make guest memory (`abi/bpf/pv_page_map.h`).

use std::os::fd::{AsFd, OwnedFd};

use unspin_abi::unspin_pv_page;

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
