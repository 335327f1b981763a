// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that are counted as if they served vCPUs, so that a host of any size can be measured without its VMs.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use libbpf_rs::{MapCore, MapFlags};
use unspin_abi as abi;

use super::Watcher;
use crate::{
    Error,
    kernel::{bytes, load},
};

/// Where struct watched_vcpu has them (bpf/watch/state.bpf.h asserts it), bytes.
const KVM_POINTER_AT: usize = 8;
const VM_AT: usize = 16;
/// include/uapi/linux/pidfd.h, Linux 6.9 and later
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;

impl Watcher {
    /// Counts that thread as one of VM `number`, above 0, from now on. For measurements of the watcher itself.
    ///
    /// # Errors
    /// When there is no such thread, or the kernel refuses.
    pub fn pretend(&self, thread: u32, number: u64) -> Result<(), Error> {
        let refused = |source: io::Error| load::refused("pretending a vCPU", source.into());
        // No struct kvm is there.
        let kvm = number;
        let vm = abi::unspin_watch_vm {
            number,
            ..Default::default()
        };
        load::update(&self.vms, &kvm.to_ne_bytes(), bytes::bytes_of(&vm))?;
        // SAFETY: takes numbers only, and returns a new fd or -1.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, thread, PIDFD_THREAD) };
        let fd = i32::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(refused(io::Error::last_os_error()));
        }
        // SAFETY: a new fd that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let vcpus = load::map(&self.object, "vcpus")?;
        let mut value = vec![0; vcpus.value_size() as usize];
        value[KVM_POINTER_AT..][..8].copy_from_slice(&kvm.to_ne_bytes());
        value[VM_AT..][..8].copy_from_slice(&number.to_ne_bytes());
        let key = fd.as_raw_fd().to_ne_bytes();
        vcpus
            .update(&key, &value, MapFlags::ANY)
            .map_err(|source| load::refused("pretending a vCPU", source))
    }
}
