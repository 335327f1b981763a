// SPDX-License-Identifier: MIT OR Apache-2.0
//! Useful time of VMs: `bpf/useful_time/main.bpf.c` from attach until the value is dropped, beside any scheduler.

use std::{collections::BTreeMap, path::Path};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use unspin_policy::auto::UsefulTime;

use crate::{
    Error,
    kernel::{
        bytes, entries,
        load::{self, NicenessGuard},
        requirements,
    },
};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/useful_time.bpf.o"));

/// The programs while they are attached.
pub struct UsefulTimeMeter {
    // Dropped in this order.
    links: Vec<Link>,
    sums: MapHandle,
    places: MapHandle,
    /// What was read last.
    last: BTreeMap<u32, UsefulTime>,
    threads: VcpuThreads,
    samples: bool,
    object: Object,
}

/// Mean time between two samples of a CPU while vCPUs run there: 0.4 % of it, at 2 us for each exit.
const SAMPLED_EVERY_NS: u32 = 500_000;

/// The threads of vCPUs, as they enter their guests: the meter's list, while that is attached.
pub struct VcpuThreads(MapHandle);

impl VcpuThreads {
    /// Thread and process of each vCPU that has entered its guest since the meter was attached. Those that are gone are forgotten.
    ///
    /// # Errors
    /// When the kernel refuses to read the map.
    pub fn read(&self) -> Result<Vec<(u32, u32)>, Error> {
        let mut threads = Vec::new();
        for key in self.0.keys() {
            let thread: u32 = bytes::read("vcpu_threads", &key)?;
            let value = self.0.lookup(&key, MapFlags::ANY);
            let value = value
                .map_err(|source| load::refused("reading the BPF map vcpu_threads", source))?;
            // It may have been taken out meanwhile.
            let Some(value) = value else { continue };
            let process: u32 = bytes::read("vcpu_threads", &value)?;
            if Path::new(&format!("/proc/{process}/task/{thread}")).exists() {
                threads.push((thread, process));
            } else {
                let _ = self.0.delete(&key);
            }
        }
        Ok(threads)
    }
}

impl UsefulTimeMeter {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// When KVM is not loaded, rights are missing or the kernel refuses the programs.
    pub fn attach() -> Result<UsefulTimeMeter, Error> {
        UsefulTimeMeter::attach_with(false)
    }

    /// The same; `samples`: vCPUs are sampled at random times, which says what is spun whatever the length of slices.
    ///
    /// # Errors
    /// As [`UsefulTimeMeter::attach`].
    pub(crate) fn attach_with(samples: bool) -> Result<UsefulTimeMeter, Error> {
        let _niceness = NicenessGuard::begin();
        requirements::check_for_useful_time()?;
        let object = load::with_log(|| {
            ObjectBuilder::default()
                .name("useful_time")
                .and_then(|builder| builder.open_memory(OBJECT))
                .and_then(|object| sized(object, samples))
                .and_then(libbpf_rs::OpenObject::load)
                .map_err(|source| load::not_loaded("the programs that measure useful time", source))
        })?;
        Ok(UsefulTimeMeter {
            links: load::attach(&object)?,
            sums: load::map(&object, "useful_times")?,
            places: load::map(&object, "spin_places")?,
            last: BTreeMap::new(),
            threads: VcpuThreads(load::map(&object, "vcpu_threads")?),
            samples,
            object,
        })
    }

    /// Nothing is measured until [`UsefulTimeMeter::resume`]; nobody pays for it.
    pub(crate) fn pause(&mut self) {
        self.links.clear();
    }

    /// Measuring goes on. A vCPU that is in its guest now may be taken to have been there since the pause, once.
    ///
    /// # Errors
    /// When the kernel refuses to attach the programs again.
    pub(crate) fn resume(&mut self) -> Result<(), Error> {
        if self.links.is_empty() {
            self.links = load::attach(&self.object)?;
        }
        Ok(())
    }

    /// Whether vCPUs are sampled.
    pub(crate) fn samples(&self) -> bool {
        self.samples
    }

    /// The threads of vCPUs.
    ///
    /// # Errors
    /// When the kernel refuses another handle of the map.
    pub fn threads(&self) -> Result<VcpuThreads, Error> {
        let again = MapHandle::try_from(&self.threads.0);
        let again = again.map_err(|source| load::refused("the BPF map vcpu_threads", source))?;
        Ok(VcpuThreads(again))
    }

    /// The sums of each VM since it was seen first, by process. Those whose process is gone are forgotten.
    ///
    /// # Errors
    /// When the kernel refuses to read the map.
    pub fn read(&mut self) -> Result<BTreeMap<u32, UsefulTime>, Error> {
        let mut vms = BTreeMap::new();
        entries::each(&self.sums, "useful_times", |process, one: UsefulTime| {
            vms.entry(process)
                .or_insert_with(UsefulTime::default)
                .add(&one);
        })?;
        // Of a VM that goes on nobody need ask whether it is there.
        vms.retain(|process, sum| self.last.get(process) != Some(sum) || self.is_there(*process));
        self.last.clone_from(&vms);
        Ok(vms)
    }

    /// Whether that process is there; if not, its sums are forgotten.
    fn is_there(&self, process: u32) -> bool {
        if Path::new(&format!("/proc/{process}")).exists() {
            return true;
        }
        // They may be gone already.
        let key = process.to_ne_bytes();
        let _ = (self.sums.delete(&key), self.places.delete(&key));
        false
    }
}

/// With a sampler for each CPU, if they are wanted.
fn sized(mut object: OpenObject, samples: bool) -> Result<OpenObject, libbpf_rs::Error> {
    let cpus = libbpf_rs::num_possible_cpus()?;
    for mut map in object.maps_mut() {
        match map.name().to_string_lossy().as_ref() {
            "samplers" => map.set_max_entries(u32::try_from(cpus).unwrap_or(u32::MAX))?,
            name if name.ends_with(".rodata") && samples => {
                map.set_initial_value(&SAMPLED_EVERY_NS.to_ne_bytes())?;
            }
            _ => {}
        }
    }
    Ok(object)
}
