// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching every vCPU of the host all the time, by counters that the kernel keeps: `bpf/watch/main.bpf.c`.

mod pretend;
mod reading;

use std::{collections::BTreeSet, fs, io::Read, mem, sync::Mutex};

use libbpf_rs::{Iter, Link, MapCore, MapHandle, Object, ObjectBuilder, OpenObject};
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
    /// Whether KVM's exits are those of AMD's or Intel's hardware.
    sees_exits: bool,
    fit: Fit,
    /// VMs that had no thread at the last reading, where nobody tells their end.
    without_threads: Mutex<BTreeSet<u64>>,
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
        let _niceness = NicenessGuard::begin();
        let most = Fit {
            direct_reads: true,
            yields: requirements::sees_yields(),
            ends: true,
        };
        let (fit, object) = loaded_as_fits(most)?;
        let iterator = iterator(&object)?;
        Ok(Watcher {
            _links: load::attach(&object)?,
            iterator,
            vms: load::map(&object, "vms")?,
            globals: load::map(&object, ".bss")?,
            sees_exits: ["kvm_amd", "kvm_intel"]
                .iter()
                .any(|module| fs::exists(format!("/sys/module/{module}")).unwrap_or(false)),
            fit,
            without_threads: Mutex::default(),
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
        if !self.fit.ends {
            self.forget_abandoned(&vms, &host)?;
        }
        host.sees_yields = self.fit.yields;
        host.sees_exits = self.sees_exits;
        host.unseen_exits = globals.unseen;
        Ok(host)
    }

    /// Takes VMs away that had no thread twice: on this kernel nobody tells the end of a VM. One that goes on has threads again with its
    /// next exit, and a new number then.
    fn forget_abandoned(
        &self,
        vms: &[(u64, abi::unspin_watch_vm)],
        host: &WatchedHost,
    ) -> Result<(), Error> {
        let abandoned = host.vms.iter().filter(|vm| vm.vcpus.is_empty());
        let abandoned: BTreeSet<u64> = abandoned.map(|vm| vm.number).collect();
        let twice: Vec<u64> = {
            let known = self.without_threads.lock();
            let mut known = known.unwrap_or_else(|poisoned| poisoned.into_inner());
            let before = mem::replace(&mut *known, abandoned);
            before.intersection(&known).copied().collect()
        };
        for (kvm, _) in vms.iter().filter(|(_, vm)| twice.contains(&vm.number)) {
            // It may be gone already.
            let _ = self.vms.delete(&kvm.to_ne_bytes());
        }
        if twice.is_empty() {
            return Ok(());
        }
        // As on_destroy_vm does, which is not there: threads look their VM up again.
        let mut globals: abi::unspin_watch_globals = load::value(&self.globals, "globals", 0)?;
        globals.generation += 1;
        load::set_value(&self.globals, 0, &globals)
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

/// What a kernel allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fit {
    /// Programs read its memory by themselves (Linux 6.17 and later).
    direct_reads: bool,
    /// Returns of yield_to() are seen.
    yields: bool,
    /// The end of a VM is seen: a kernel without ftrace refuses programs at functions.
    ends: bool,
}

/// The programs in the kernel, where none runs yet, with as much as it allows.
fn loaded_as_fits(most: Fit) -> Result<(Fit, Object), Error> {
    let mut refused = None;
    for ends in [true, false] {
        for direct_reads in [true, false] {
            let fit = Fit {
                direct_reads,
                ends,
                ..most
            };
            match loaded(fit) {
                Ok(object) => return Ok((fit, object)),
                // The last one is told: it asks for the least.
                Err(error) => refused = Some(error),
            }
        }
    }
    Err(refused.unwrap_or(Error::NoKvmDevice))
}

fn loaded(fit: Fit) -> Result<Object, Error> {
    load::with_log(|| {
        ObjectBuilder::default()
            .name("watch")
            .and_then(|builder| builder.open_memory(OBJECT))
            .and_then(|object| fitted(object, fit))
            .and_then(OpenObject::load)
            .map_err(|source| load::not_loaded("the programs that watch", source))
    })
}

/// With room for the host's VMs, and without programs that the kernel does not allow.
fn fitted(mut object: OpenObject, fit: Fit) -> Result<OpenObject, libbpf_rs::Error> {
    for mut map in object.maps_mut() {
        match map.name().to_string_lossy().as_ref() {
            "vms" => map.set_max_entries(vms_max())?,
            name if name.ends_with(".rodata") => {
                map.set_initial_value(&u32::from(fit.direct_reads).to_ne_bytes())?;
            }
            _ => {}
        }
    }
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        if section.starts_with("kretprobe.multi/") {
            program.set_autoload(fit.yields);
        } else if section.starts_with("fentry/") {
            program.set_autoload(fit.ends);
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
