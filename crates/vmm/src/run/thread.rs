// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of one vCPU: named, confined, held at a gate until every vCPU is there, then in the guest until the
//! guest is done, fails, or is told to leave.
use std::{
    io,
    os::unix::thread::JoinHandleExt,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    thread::{Builder, JoinHandle},
};

use kvm_ioctls::VcpuFd;

use crate::{
    error::GuestFailure,
    host::{affinity, clock},
    machine::vcpu::{self, Leave},
    run::kick::{self, Kickable},
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
        kick::kick(self.handle.as_pthread_t());
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
        confined: cpus.map_or(Ok(()), affinity::confine_to_first),
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
