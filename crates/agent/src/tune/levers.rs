// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives vCPUs' threads the slices that were chosen for their VM.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use unspin_policy::auto::AutoSet;

use super::guard::Guard;
use crate::{
    SteerError,
    auto::{Actuator, VcpuThreads},
    kernel::thread_slice::Scheduled,
};

/// A thread that has another slice than it came with.
struct Changed {
    slice_ns: u32,
    first_ns: u32,
    /// Somebody else has given it another one meanwhile: it is left alone.
    is_foreign: bool,
}

impl Changed {
    /// Whether the slice that it has now is not the one that it was given.
    fn differs(&self, now_ns: u64, kernels_ns: u64) -> bool {
        let given_ns = match (self.slice_ns, self.first_ns) {
            (0, 0) => kernels_ns,
            (0, first_ns) => first_ns.into(),
            (slice_ns, _) => slice_ns.into(),
        };
        now_ns != given_ns
    }
}

/// Slices of VMs' own. They are given back when it is dropped, or its process ends in any way.
pub(super) struct Levers {
    threads: VcpuThreads,
    guard: Guard,
    kernels_ns: u64,
    /// By process, ns; 0: the kernel's own.
    wanted: BTreeMap<u32, u32>,
    /// For VMs that nobody has chosen for, ns.
    for_others: u32,
    /// By thread.
    changed: BTreeMap<u32, Changed>,
}

impl Levers {
    /// `kernels_ns`: the kernel's own slice; `for_others`: that of VMs that nobody has chosen for, ns; 0: the kernel's own.
    pub(super) fn new(
        threads: VcpuThreads,
        guard: Guard,
        kernels_ns: u64,
        for_others: u32,
    ) -> Levers {
        Levers {
            threads,
            guard,
            kernels_ns,
            wanted: BTreeMap::new(),
            for_others,
            changed: BTreeMap::new(),
        }
    }

    /// All threads have what is wanted for their VMs. `processes`: those alone; empty: all.
    pub(super) fn renew(&mut self, processes: &[u32]) -> Result<(), SteerError> {
        let threads = self.threads.read()?;
        for (thread, process) in &threads {
            let of_it = self.wanted.get(process).copied();
            let chosen = processes.is_empty() || processes.contains(process);
            let wanted_ns = of_it.unwrap_or(if chosen { self.for_others } else { 0 });
            let has_ns = self.changed.get(thread).map_or(0, |known| known.slice_ns);
            if wanted_ns != has_ns {
                let done = self.give(*thread, wanted_ns);
                done.map_err(|source| SteerError::File {
                    path: format!("the slice of thread {thread} of process {process}"),
                    source,
                })?;
            }
        }
        // What is kept of those that are gone would only grow.
        let (there, vms): (BTreeSet<u32>, BTreeSet<u32>) = threads.into_iter().unzip();
        self.changed.retain(|thread, _| there.contains(thread));
        self.wanted.retain(|process, _| vms.contains(process));
        Ok(())
    }

    fn give(&mut self, thread: u32, slice_ns: u32) -> io::Result<()> {
        let now = match Scheduled::of(thread) {
            Ok(now) if now.is_fair() => now,
            // Real-time threads have no slices of this kind; one that has ended needs none.
            _ => return Ok(()),
        };
        let first_ns = match self.changed.get_mut(&thread) {
            Some(known) if known.is_foreign || known.differs(now.slice_ns(), self.kernels_ns) => {
                known.is_foreign = true;
                known.slice_ns = slice_ns;
                return Ok(());
            }
            Some(known) => known.first_ns,
            None if now.slice_ns() == self.kernels_ns => 0,
            None => u32::try_from(now.slice_ns()).unwrap_or(0),
        };
        self.guard.tell(thread, slice_ns, first_ns)?;
        let to_ns = if slice_ns == 0 { first_ns } else { slice_ns };
        match now.set_slice(thread, to_ns.into()) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
            done => done?,
        }
        let known = Changed {
            slice_ns,
            first_ns,
            is_foreign: false,
        };
        self.changed.insert(thread, known);
        Ok(())
    }

    /// Everything is as it was.
    pub(super) fn give_back(&mut self) {
        if !self.guard.end() {
            for (thread, known) in &self.changed {
                let now = Scheduled::of(*thread).ok();
                let ours = |now: &Scheduled| now.slice_ns() == u64::from(known.slice_ns);
                if let Some(now) = now.filter(ours).filter(|_| !known.is_foreign) {
                    // It may end meanwhile.
                    let _ = now.set_slice(*thread, known.first_ns.into());
                }
            }
        }
        self.changed.clear();
    }
}

impl Drop for Levers {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Actuator for Levers {
    /// Nobody else chooses slices for VMs.
    fn by_hand(&mut self) -> Result<BTreeSet<u32>, SteerError> {
        Ok(BTreeSet::new())
    }

    fn give(&mut self, process: u32, set: AutoSet) -> Result<bool, SteerError> {
        self.wanted.insert(process, set.slice_ns().unwrap_or(0));
        Ok(true)
    }

    fn given(&mut self) -> Result<(), SteerError> {
        self.renew(&[])
    }

    fn take_back(&mut self) -> Result<(), SteerError> {
        self.give_back();
        Ok(())
    }
}
