// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that say of themselves that they serve a vCPU: for tests and measurements on kernels without KVM, with as many
//! VMs and events as one likes. What the scheduler does with them is observed as it is with real ones.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libbpf_rs::{Object, libbpf_sys};
use unspin_abi as abi;

use crate::{Error, KernelLog, ObserveOptions, Observer, kernel::bytes};

static SYNTHETIC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/synthetic.bpf.o"));

/// Events that one call writes at most: `EVENTS_MAX` of bpf/observe/synthetic.bpf.c.
pub const EVENTS_MAX: u32 = 1024;

/// What threads call to be observed; an [`Observer`] made with it sees them.
#[derive(Debug)]
pub struct Synthetic {
    adopt: OwnedFd,
    emit: OwnedFd,
    send: OwnedFd,
    destroy: OwnedFd,
}

/// What KVM tells of one inter-processor interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ipi {
    /// Low half of the ICR: vector, delivery mode, how it is addressed.
    pub icr_low: u32,
    /// Whom it is addressed to.
    pub destination: u32,
    /// vCPUs 0 to this, itself not among them, accept it; at most 64.
    pub receivers: u32,
    /// In the order of KVM's fast path: receivers first.
    pub fast: bool,
    /// Vector of a timer interrupt of the sender's own in the same exit; 0: none.
    pub own_vector: u8,
}

/// A vCPU that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// Stands for the address of the VM's `struct kvm`: not 0, and no other VM's that lives.
    pub vm: u64,
    /// Its number.
    pub number: u32,
}

impl Synthetic {
    /// Loads and attaches what observes the scheduler. Kinds of events that only KVM has never come, except
    /// `kvm_entry`, which [`Synthetic::emit`] writes.
    ///
    /// # Errors
    /// What the kernel refused: it takes root and Linux 6.10.
    pub fn attach(options: &ObserveOptions) -> Result<(Observer, Synthetic), Error> {
        options.check()?;
        let observer = Observer::from_object(options, SYNTHETIC)?.attach()?;
        let synthetic = Synthetic {
            adopt: program(&observer.object, "synthetic_adopt")?,
            emit: program(&observer.object, "synthetic_emit")?,
            send: program(&observer.object, "synthetic_send")?,
            destroy: program(&observer.object, "synthetic_destroy")?,
        };
        Ok((observer, synthetic))
    }

    /// The calling thread serves that vCPU from now on, and has made so many exits. False: no slot was left.
    ///
    /// # Errors
    /// When the kernel refuses to run the program.
    pub fn adopt(&self, vcpu: Vcpu, exits: u32) -> Result<bool, Error> {
        let context = abi::unspin_synthetic {
            vm: vcpu.vm,
            vcpu: vcpu.number,
            exits,
            ..Default::default()
        };
        Ok(run(&self.adopt, context)?.done == 1)
    }

    /// Writes so many events (at most [`EVENTS_MAX`]) about the calling thread: `kvm_entry`, their `outside_ns` counting
    /// up from `first`. False: the thread is not observed.
    ///
    /// # Errors
    /// When the kernel refuses to run the program.
    pub fn emit(&self, first: u64, events: u32) -> Result<bool, Error> {
        let context = abi::unspin_synthetic {
            first,
            events,
            ..Default::default()
        };
        Ok(run(&self.emit, context)?.done == 1)
    }

    /// The calling thread's vCPU sends that, in an exit of its own. False: the thread is not observed.
    ///
    /// # Errors
    /// When the kernel refuses to run the program.
    pub fn send(&self, ipi: Ipi) -> Result<bool, Error> {
        let context = abi::unspin_synthetic {
            icr_low: ipi.icr_low,
            destination: ipi.destination,
            receivers: ipi.receivers,
            fast: ipi.fast.into(),
            own_vector: ipi.own_vector.into(),
            ..Default::default()
        };
        Ok(run(&self.send, context)?.done == 1)
    }

    /// That VM is destroyed; its address may be used for another.
    ///
    /// # Errors
    /// When the kernel refuses to run the program.
    pub fn destroy(&self, vm: u64) -> Result<(), Error> {
        let context = abi::unspin_synthetic {
            vm,
            ..Default::default()
        };
        run(&self.destroy, context).map(|_| ())
    }
}

fn program(object: &Object, name: &str) -> Result<OwnedFd, Error> {
    let refused = |source: std::io::Error| Error::Bpf {
        step: format!("finding the BPF program {name}"),
        source: source.into(),
        log: KernelLog::default(),
    };
    let found = object.progs().find(|program| program.name() == name);
    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let found = found.ok_or_else(|| refused(missing()))?;
    found.as_fd().try_clone_to_owned().map_err(refused)
}

/// Runs a program of type syscall on the calling thread; its context as the program left it.
fn run(program: &OwnedFd, context: abi::unspin_synthetic) -> Result<abi::unspin_synthetic, Error> {
    let mut context = bytes::bytes_of(&context).to_vec();
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as u64,
        // The kernel writes what the program made of it back to the same place (net/bpf/test_run.c).
        ctx_in: context.as_mut_ptr().cast_const().cast(),
        ctx_size_in: context.len() as u32,
        ..Default::default()
    };
    // SAFETY: a live fd, and options whose only pointer is to `context`, writable, of the size given, which outlives the call.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) };
    if result != 0 {
        return Err(Error::Bpf {
            step: "running a synthetic vCPU's program".to_owned(),
            source: libbpf_rs::Error::from_raw_os_error(-result),
            log: KernelLog::default(),
        });
    }
    bytes::read("context", &context)
}
