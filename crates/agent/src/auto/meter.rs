// SPDX-License-Identifier: MIT OR Apache-2.0
//! Useful time of VMs: `bpf/useful_time/main.bpf.c` from attach until the value is dropped, beside any scheduler.

use std::{collections::BTreeMap, path::Path};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use unspin_policy::auto::UsefulTime;

use crate::{
    Error,
    kernel::{
        bytes,
        load::{self, NicenessGuard},
        requirements,
    },
};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/useful_time.bpf.o"));

/// The programs while they are attached.
pub struct UsefulTimeMeter {
    // Dropped in this order.
    _links: Vec<Link>,
    sums: MapHandle,
    places: MapHandle,
    _object: Object,
}

impl UsefulTimeMeter {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// When KVM is not loaded, rights are missing or the kernel refuses the programs.
    pub fn attach() -> Result<UsefulTimeMeter, Error> {
        let _niceness = NicenessGuard::begin();
        requirements::check_for_useful_time()?;
        let object = load::with_log(|| {
            ObjectBuilder::default()
                .name("useful_time")
                .and_then(|builder| builder.open_memory(OBJECT))
                .and_then(libbpf_rs::OpenObject::load)
                .map_err(|source| load::not_loaded("the programs that measure useful time", source))
        })?;
        Ok(UsefulTimeMeter {
            _links: load::attach(&object)?,
            sums: load::map(&object, "useful_times")?,
            places: load::map(&object, "spin_places")?,
            _object: object,
        })
    }

    /// The sums of each VM since it was seen first, by process. Those whose process is gone are forgotten.
    ///
    /// # Errors
    /// When the kernel refuses to read the map.
    pub fn read(&self) -> Result<BTreeMap<u32, UsefulTime>, Error> {
        let mut vms = BTreeMap::new();
        for key in self.sums.keys() {
            let process: u32 = bytes::read("useful_times", &key)?;
            if !Path::new(&format!("/proc/{process}")).exists() {
                // They may be gone already.
                let _ = (self.sums.delete(&key), self.places.delete(&key));
                continue;
            }
            let of_cpus = self.sums.lookup_percpu(&key, MapFlags::ANY);
            let of_cpus = of_cpus
                .map_err(|source| load::refused("reading the BPF map useful_times", source))?;
            let mut sum = UsefulTime::default();
            for one in of_cpus.unwrap_or_default() {
                sum.add(&bytes::read("useful_times", &one)?);
            }
            vms.insert(process, sum);
        }
        Ok(vms)
    }
}
