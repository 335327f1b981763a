// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking a vCPU thread out of the guest: a signal whose handler sets `immediate_exit` of the KVM_RUN that the thread
//! is in, or about to enter (Documentation/virt/kvm/api.rst, 5: "immediate_exit"). No window is left: a thread that
//! has looked at the stop flag but not yet entered KVM_RUN finds `immediate_exit` set.
use std::{cell::Cell, io, ptr};

use kvm_bindings::kvm_run;
use kvm_ioctls::VcpuFd;
use vmm_sys_util::signal::{SIGRTMIN, register_signal_handler};

thread_local! {
    /// The kvm_run page of the vCPU that this thread runs; null when it runs none.
    static KVM_RUN: Cell<*mut kvm_run> = const { Cell::new(ptr::null_mut()) };
}

/// Installs the handler, for the whole process; once is enough, more does no harm.
pub fn install() -> io::Result<()> {
    register_signal_handler(SIGRTMIN(), leave_guest).map_err(io::Error::from)
}

/// Kicks a thread. It need not be running a vCPU.
pub fn kick(thread: libc::pthread_t) {
    // SAFETY: the caller's JoinHandle has not been joined, so the id is valid; an ended thread gives ESRCH.
    unsafe { libc::pthread_kill(thread, SIGRTMIN()) };
}

/// Async-signal-safe: reads a thread-local that needs no initialisation and writes one byte.
extern "C" fn leave_guest(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    KVM_RUN.with(|run| {
        let run = run.get();
        if !run.is_null() {
            // SAFETY: not null, so a `Kickable` of this very thread is alive and with it the mapped page.
            unsafe { (&raw mut (*run).immediate_exit).write_volatile(1) };
        }
    });
}

/// A vCPU that a kick reaches, on the thread that made it.
pub struct Kickable {
    vcpu: VcpuFd,
}

impl Kickable {
    /// From now on a kick of the calling thread leaves this vCPU. One per thread.
    pub fn new(mut vcpu: VcpuFd) -> Kickable {
        KVM_RUN.with(|run| run.set(ptr::from_mut(vcpu.get_kvm_run())));
        Kickable { vcpu }
    }

    /// The vCPU.
    pub fn vcpu(&mut self) -> &mut VcpuFd {
        &mut self.vcpu
    }
}

impl Drop for Kickable {
    fn drop(&mut self) {
        // Before the page is unmapped with `vcpu`.
        KVM_RUN.with(|run| run.set(ptr::null_mut()));
    }
}
