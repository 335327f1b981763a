// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching every vCPU of the host all the time, by counters that the kernel keeps: `bpf/watch/main.bpf.c`.

mod reading;

use std::{fs, io::Read};

use libbpf_rs::{Iter, Link, MapHandle, Object, ObjectBuilder, OpenObject};
use unspin_abi as abi;

use crate::{
    Error, Health,
    kernel::{
        bytes, entries,
        load::{self, NicenessGuard, refused},
        requirements,
    },
    monotonic_ns,
    observe::{health, observer::enable_run_statistics},
};

pub use reading::{WatchCounters, WatchedHost, WatchedVcpu, WatchedVm};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.bpf.o"));

/// The program that writes what was counted.
const ITERATOR: &str = "read_vcpus";
/// Room for VMs: no fewer, as a small host's limit may be raised later; no more, as 16 bytes are taken for each whether it comes or not.
const VMS: std::ops::RangeInclusive<u32> = 1024..=65_536;

/// Counts for every vCPU thread of this host from [`Watcher::attach`] until it is dropped.
pub struct Watcher {
    // Dropped in this order: first nothing runs any more, then its maps go.
    _links: Vec<Link>,
    iterator: Link,
    vms: MapHandle,
    globals: MapHandle,
    sees_yields: bool,
    object: Object,
    _run_statistics: Option<std::os::fd::OwnedFd>,
}

impl Watcher {
    /// Loads and attaches the programs. A vCPU is seen from its first exit or entry after that.
    ///
    /// # Errors
    /// Says what is missing (root, BTF, KVM, a function) or what the kernel refused; then nothing stays attached.
    pub fn attach() -> Result<Watcher, Error> {
        Watcher::attach_with(false)
    }

    /// The same; `run_statistics`: runs and time of each program are counted, for every BPF program of the host.
    ///
    /// # Errors
    /// As [`Watcher::attach`].
    pub fn attach_with(run_statistics: bool) -> Result<Watcher, Error> {
        requirements::check_for_watching()?;
        let run_statistics = run_statistics.then(enable_run_statistics).transpose()?;
        let sees_yields = requirements::sees_yields();
        let _niceness = NicenessGuard::begin();
        let object = loaded(sees_yields, true).or_else(|_| loaded(sees_yields, false))?;
        let iterator = iterator(&object)?;
        Ok(Watcher {
            _links: load::attach(&object)?,
            iterator,
            vms: load::map(&object, "vms")?,
            globals: load::map(&object, ".bss")?,
            sees_yields,
            object,
            _run_statistics: run_statistics,
        })
    }

    /// What has been counted, by VM and vCPU, of VMs that are there. Takes some 100 ns for each task of the host and some us for each
    /// vCPU.
    ///
    /// # Errors
    /// When the kernel refuses to read a map, or to run the iterator.
    pub fn read(&self) -> Result<WatchedHost, Error> {
        // VMs first: the counters of a thread that ends in between are missed for once, not counted twice.
        let mut vms = Vec::new();
        entries::each(&self.vms, "vms", |kvm: u64, vm: abi::unspin_watch_vm| {
            vms.push((kvm, vm));
        })?;
        let read = |source| refused("reading the counters of vCPUs", source);
        let mut bytes = Vec::new();
        let mut iterator = Iter::new(&self.iterator).map_err(read)?;
        iterator
            .read_to_end(&mut bytes)
            .map_err(|error| read(error.into()))?;
        let globals: abi::unspin_watch_globals = load::value(&self.globals, "globals", 0)?;
        let records = bytes.chunks_exact(size_of::<abi::unspin_watch_record>());
        let records: Result<Vec<abi::unspin_watch_record>, Error> = records
            .map(|record| bytes::read("read_vcpus", record))
            .collect();
        let mut host = reading::host(monotonic_ns(), &vms, &records?);
        host.sees_yields = self.sees_yields;
        host.unseen_exits = globals.unseen;
        Ok(host)
    }

    /// What the programs cost (with run statistics) and which of their runs did not take place.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn health(&self) -> Result<Health, Error> {
        let globals: abi::unspin_watch_globals = load::value(&self.globals, "globals", 0)?;
        Ok(Health {
            unobserved_exits: globals.unseen,
            vms: globals.vms,
            programs: health::programs(&self.object)?,
            ..Health::default()
        })
    }
}

fn iterator(object: &Object) -> Result<Link, Error> {
    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound).into();
    object
        .progs_mut()
        .find(|program| program.name() == ITERATOR)
        .ok_or_else(missing)
        .and_then(|program| program.attach())
        .map_err(|source| refused("attaching the iterator of vCPUs", source))
}

/// The programs in the kernel, where none runs yet; `direct_reads`: they read its memory by themselves (Linux 6.17 and later).
fn loaded(sees_yields: bool, direct_reads: bool) -> Result<Object, Error> {
    load::with_log(|| {
        ObjectBuilder::default()
            .name("watch")
            .and_then(|builder| builder.open_memory(OBJECT))
            .and_then(|object| fitted(object, sees_yields, direct_reads))
            .and_then(OpenObject::load)
            .map_err(|source| load::not_loaded("the programs that watch", source))
    })
}

/// With room for the host's VMs, and without the program for yields where those cannot be seen.
fn fitted(
    mut object: OpenObject,
    sees_yields: bool,
    direct_reads: bool,
) -> Result<OpenObject, libbpf_rs::Error> {
    for mut map in object.maps_mut() {
        match map.name().to_string_lossy().as_ref() {
            "vms" => map.set_max_entries(vms_max())?,
            name if name.ends_with(".rodata") => {
                map.set_initial_value(&u32::from(direct_reads).to_ne_bytes())?;
            }
            _ => {}
        }
    }
    for mut program in object.progs_mut() {
        if program
            .section()
            .to_string_lossy()
            .starts_with("kretprobe.multi/")
        {
            program.set_autoload(sees_yields);
        }
    }
    Ok(object)
}

/// A VM takes a thread at least, and the kernel's limit on those follows from the host's memory (kernel/fork.c, set_max_threads(),
/// Linux 7.2).
fn vms_max() -> u32 {
    let limit = fs::read_to_string("/proc/sys/kernel/threads-max").unwrap_or_default();
    let limit: u32 = limit.trim().parse().unwrap_or(0);
    limit.clamp(*VMS.start(), *VMS.end())
}
