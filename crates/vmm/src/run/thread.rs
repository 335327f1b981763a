// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of one vCPU: named, confined, held at a gate until every vCPU is there, then in the guest until the
//! guest is done, fails, or is told to leave.
//!
//! Taking a vCPU thread out of the guest: a signal whose handler sets `immediate_exit` of the KVM_RUN that the thread
//! is in, or about to enter (Documentation/virt/kvm/api.rst, 5: "immediate_exit"). No window is left: a thread that
//! has looked at the stop flag but not yet entered KVM_RUN finds `immediate_exit` set.

use std::{
    cell::Cell,
    io,
    os::unix::thread::JoinHandleExt,
    ptr,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    thread::{Builder, JoinHandle},
};

use kvm_bindings::kvm_run;
use kvm_ioctls::VcpuFd;
use vmm_sys_util::signal::{SIGRTMIN, register_signal_handler};

use crate::{
    error::GuestFailure,
    host::{clock, confine_to_first},
    machine::vcpu::{self, Leave},
};

/// Enough for the run loop; a VM may have 64 of them.
const STACK_BYTES: usize = 128 << 10;

/// Which vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of its VM among those of the run.
    pub vm: usize,
    /// In its VM.
    pub vcpu: u32,
}

/// What a vCPU thread tells the main thread.
pub enum Message {
    /// It waits at the gate.
    Ready {
        /// Who.
        place: Place,
        /// `gettid`.
        thread_id: u32,
        /// Whether it could be confined to the scenario's CPUs.
        confined: io::Result<()>,
    },
    /// It runs no guest any more.
    Ended {
        /// Who.
        place: Place,
        /// Why and with what.
        end: End,
    },
}

/// How a vCPU ended.
#[derive(Clone, Debug)]
pub struct End {
    /// The failure, for one that did not just finish or was told to leave.
    pub failure: Option<GuestFailure>,
    /// RIP of one that was told to leave before it had finished.
    pub left_at: Option<u64>,
    /// Returns of KVM_RUN.
    pub user_exits: u64,
    /// CPU time of the thread in all.
    pub cpu_time_ns: u64,
    /// The vCPU's TSC offset; 0 where KVM does not tell.
    pub tsc_offset: i64,
}

/// What all vCPU threads of a run share.
#[derive(Default)]
pub struct Shared {
    leave: AtomicBool,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Shared {
    /// Lets every thread at the gate into its guest.
    pub fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Tells every thread to leave its guest, or not to enter it; each must then be kicked.
    pub fn leave(&self) {
        self.leave.store(true, Ordering::SeqCst);
        self.open();
    }

    fn wait_until_open(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = self.opened.wait_while(open, |open| !*open);
        drop(passed.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A running thread; `join` it.
pub struct VcpuThread {
    handle: JoinHandle<()>,
    cpu_clock: Option<libc::clockid_t>,
}

impl VcpuThread {
    /// Starts it, up to the gate.
    ///
    /// # Errors
    /// The kernel has no thread left.
    pub fn spawn(
        vcpu: VcpuFd,
        name: String,
        place: Place,
        cpus: Option<u32>,
        shared: Arc<Shared>,
        messages: Sender<Message>,
    ) -> io::Result<VcpuThread> {
        let handle = Builder::new()
            .name(name)
            .stack_size(STACK_BYTES)
            .spawn(move || thread(vcpu, place, cpus, &shared, &messages))?;
        let mut clock = 0;
        // SAFETY: the handle has not been joined, so the thread id is valid; the clock's id goes into `clock`.
        let found = unsafe { libc::pthread_getcpuclockid(handle.as_pthread_t(), &mut clock) };
        Ok(VcpuThread {
            handle,
            cpu_clock: (found == 0).then_some(clock),
        })
    }

    /// CPU time so far; `None` once it has ended.
    pub fn cpu_time_ns(&self) -> Option<u64> {
        clock::clock_ns(self.cpu_clock?)
    }

    /// Takes it out of the guest, when `Shared::leave` was called before.
    pub fn kick(&self) {
        kick(self.handle.as_pthread_t());
    }

    /// Waits for its end.
    pub fn join(self) {
        // A panic of the thread has been printed; its `Ended` is missing, which the main thread sees.
        let _ = self.handle.join();
    }
}

fn thread(
    vcpu: VcpuFd,
    place: Place,
    cpus: Option<u32>,
    shared: &Shared,
    messages: &Sender<Message>,
) {
    let mut vcpu = Kickable::new(vcpu);
    // The main thread may be gone only after it has joined this one: sending cannot fail.
    let _ = messages.send(Message::Ready {
        place,
        // SAFETY: gettid has no arguments and always succeeds.
        thread_id: unsafe { libc::gettid() } as u32,
        confined: cpus.map_or(Ok(()), confine_to_first),
    });
    shared.wait_until_open();
    let end = run(vcpu.vcpu(), shared);
    let _ = messages.send(Message::Ended { place, end });
}

fn run(vcpu: &mut VcpuFd, shared: &Shared) -> End {
    let mut end = End {
        failure: None,
        left_at: None,
        user_exits: 0,
        cpu_time_ns: 0,
        tsc_offset: 0,
    };
    loop {
        if shared.leave.load(Ordering::SeqCst) {
            end.left_at = Some(vcpu::rip(vcpu));
            break;
        }
        let left = vcpu::run_once(vcpu);
        end.user_exits += 1;
        match left {
            Leave::Again => {}
            Leave::Done => break,
            Leave::Failed(failure) => {
                end.failure = Some(failure);
                break;
            }
        }
    }
    end.tsc_offset = vcpu::tsc_offset(vcpu).unwrap_or(0);
    end.cpu_time_ns = clock::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0);
    end
}

thread_local! {
    /// The kvm_run page of the vCPU that this thread runs; null when it runs none.
    static KVM_RUN: Cell<*mut kvm_run> = const { Cell::new(ptr::null_mut()) };
}

/// Installs the handler, for the whole process; once is enough, more does no harm.
pub fn install_kick_handler() -> io::Result<()> {
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
