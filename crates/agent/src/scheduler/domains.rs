// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs share a queue: those of one last-level cache, as /sys tells them (`policy/mechanics/domains.h`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use unspin_abi::UNSPIN_STEER_DOMAINS_MAX;
use unspin_policy::mechanics::DOMAIN_CPUS_MAX;

use super::host::parse;

/// The domains of a host's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Domains {
    /// Each one's CPUs, those of one node side by side; none is empty, and there is at least one.
    cpus: Vec<BTreeSet<u32>>,
    /// Each one's node.
    nodes: Vec<u32>,
}

/// What /sys says of one CPU; what it does not say is 0, or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuPlace {
    /// CPUs of its last-level cache.
    cache: BTreeSet<u32>,
    /// CPUs of its core.
    core: BTreeSet<u32>,
    node: u32,
}

impl CpuPlace {
    /// Of that CPU, below /sys/devices/system.
    fn read(system: &Path, cpu: u32) -> CpuPlace {
        let folder = system.join(format!("cpu/cpu{cpu}"));
        let list = |path: &Path| {
            let text = fs::read_to_string(path).ok();
            text.and_then(|text| parse(&text)).unwrap_or_default()
        };
        // index0, index1, ... of rising levels; instruction caches do not come last.
        let caches = (0..).map(|index| folder.join(format!("cache/index{index}")));
        let last = caches.take_while(|cache| cache.exists()).last();
        let nodes = fs::read_dir(&folder).into_iter().flatten().flatten();
        let node = nodes.filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_prefix("node")?.parse().ok()
        });
        CpuPlace {
            cache: last.map_or_else(BTreeSet::new, |cache| list(&cache.join("shared_cpu_list"))),
            core: list(&folder.join("topology/thread_siblings_list")),
            node: node.min().unwrap_or(0),
        }
    }
}

impl Domains {
    /// Of this host; `shared`: the CPUs that take shared tasks.
    pub(super) fn here(shared: &BTreeSet<u32>) -> Domains {
        let system = Path::new("/sys/devices/system");
        let places = shared
            .iter()
            .map(|&cpu| (cpu, CpuPlace::read(system, cpu)))
            .collect();
        Domains::of(&places)
    }

    /// Caches with more CPUs than a domain has are shared out by whole cores; where that makes too many domains, by nodes, and
    /// all are one if those are too many.
    pub(super) fn of(places: &BTreeMap<u32, CpuPlace>) -> Domains {
        let by_cache = |place: &CpuPlace, cpu: u32| {
            let first = place.cache.first().copied();
            // A CPU without a cache of its own, as some emulators have it, is of its node.
            (place.node, first.map_or(u32::MAX, |first| first.min(cpu)))
        };
        let most = UNSPIN_STEER_DOMAINS_MAX as usize;
        let mut groups = group(places, by_cache);
        let split: Vec<_> = groups.iter().flat_map(|of| split(of, places)).collect();
        if split.len() <= most {
            groups = split;
        }
        if groups.len() > most {
            groups = group(places, |place, _| (place.node, 0));
        }
        if groups.len() > most || groups.is_empty() {
            groups = vec![places.keys().copied().collect()];
        }
        let node = |cpus: &BTreeSet<u32>| cpus.first().map_or(0, |first| places[first].node);
        Domains {
            nodes: groups.iter().map(node).collect(),
            cpus: groups,
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// The number of that CPU's; 0 of one that takes no shared tasks.
    pub(super) fn of_cpu(&self, cpu: u32) -> u32 {
        let found = self.cpus.iter().position(|cpus| cpus.contains(&cpu));
        found.unwrap_or(0) as u32
    }

    /// The others, from near to far: those of its node first, from the next one on, so that not all begin with the same.
    pub(super) fn order(&self, domain: u32) -> Vec<u8> {
        let count = self.count();
        let following = (1..count).map(|step| (domain + step) % count);
        let is_near = |other: &u32| self.nodes[*other as usize] == self.nodes[domain as usize];
        let (near, far): (Vec<u32>, Vec<u32>) = following.partition(is_near);
        near.into_iter()
            .chain(far)
            .map(|other| other as u8)
            .collect()
    }
}

/// CPUs with equal keys, in order of keys.
fn group(
    places: &BTreeMap<u32, CpuPlace>,
    key: impl Fn(&CpuPlace, u32) -> (u32, u32),
) -> Vec<BTreeSet<u32>> {
    let mut groups: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
    for (&cpu, place) in places {
        groups.entry(key(place, cpu)).or_default().insert(cpu);
    }
    groups.into_values().collect()
}

/// Parts of nearly equal size, of whole cores, with at most `DOMAIN_CPUS_MAX` CPUs where cores allow that.
fn split(cpus: &BTreeSet<u32>, places: &BTreeMap<u32, CpuPlace>) -> Vec<BTreeSet<u32>> {
    let parts = cpus.len().div_ceil(DOMAIN_CPUS_MAX).max(1);
    let mut cores: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for &cpu in cpus {
        let first = places[&cpu].core.first().copied().unwrap_or(cpu);
        cores.entry(first).or_default().insert(cpu);
    }
    let each = cores.len().div_ceil(parts);
    let cores: Vec<_> = cores.into_values().collect();
    cores
        .chunks(each.max(1))
        .map(|cores| cores.iter().flatten().copied().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sockets` nodes of `caches` caches of `cores` cores of two threads, numbered as Linux does: threads of a core apart.
    fn places(sockets: u32, caches: u32, cores: u32, threads: u32) -> BTreeMap<u32, CpuPlace> {
        let all_cores = sockets * caches * cores;
        let cpu_of = |core: u32, thread: u32| core + thread * all_cores;
        let cpus_of = |first: u32, count: u32| -> BTreeSet<u32> {
            (first..first + count)
                .flat_map(|core| (0..threads).map(move |thread| cpu_of(core, thread)))
                .collect()
        };
        (0..all_cores)
            .flat_map(|core| (0..threads).map(move |thread| (core, thread)))
            .map(|(core, thread)| {
                let place = CpuPlace {
                    cache: cpus_of(core / cores * cores, cores),
                    core: cpus_of(core, 1),
                    node: core / (cores * caches),
                };
                (cpu_of(core, thread), place)
            })
            .collect()
    }

    #[test]
    fn a_cache_is_a_domain() {
        let domains = Domains::of(&places(2, 2, 2, 2));
        assert_eq!(domains.count(), 4);
        assert_eq!(domains.nodes, [0, 0, 1, 1]);
        assert_eq!(domains.cpus[1], BTreeSet::from([2, 3, 10, 11]));
        assert_eq!((domains.of_cpu(11), domains.of_cpu(4)), (1, 2));
        // Of its node first.
        assert_eq!(domains.order(0), [1, 2, 3]);
        assert_eq!(domains.order(3), [2, 0, 1]);
    }

    #[test]
    fn a_large_cache_is_shared_out_by_whole_cores() {
        // 96 CPUs below one cache, as an Intel host of 48 cores has them.
        let domains = Domains::of(&places(1, 1, 48, 2));
        assert_eq!(domains.count(), 6);
        for cpus in &domains.cpus {
            assert_eq!(cpus.len(), 16);
            assert!(
                cpus.iter()
                    .all(|cpu| cpus.contains(&(cpu % 48)) && cpus.contains(&(cpu % 48 + 48)))
            );
        }
        let odd = Domains::of(&places(1, 1, 17, 1));
        assert_eq!(
            odd.cpus.iter().map(BTreeSet::len).collect::<Vec<_>>(),
            [9, 8]
        );
    }

    #[test]
    fn too_many_domains_are_fewer_larger_ones() {
        // 96 caches of 4 CPUs on 12 nodes.
        let by_node = Domains::of(&places(12, 8, 4, 1));
        assert_eq!(by_node.count(), 12);
        assert_eq!(by_node.cpus[11].len(), 32);
        assert_eq!(Domains::of(&places(80, 1, 1, 1)).count(), 1);
    }

    #[test]
    fn what_is_not_said_makes_one_domain_a_node() {
        let silent: BTreeMap<u32, CpuPlace> =
            (0..4).map(|cpu| (cpu, CpuPlace::default())).collect();
        let domains = Domains::of(&silent);
        assert_eq!(domains.count(), 1);
        assert_eq!(domains.order(0), [0u8; 0]);
        assert_eq!(Domains::of(&BTreeMap::new()).count(), 1);
    }

    #[test]
    fn every_shared_cpu_of_this_host_is_in_one() {
        let cpus: BTreeSet<u32> = super::super::host::Cpus::here().expect("sysfs").shared();
        let domains = Domains::here(&cpus);
        let all: Vec<u32> = domains.cpus.iter().flatten().copied().collect();
        assert_eq!(all.len(), cpus.len());
        for domain in 0..domains.count() {
            let mut order = domains.order(domain);
            order.push(domain as u8);
            order.sort_unstable();
            assert!(
                order
                    .iter()
                    .enumerate()
                    .all(|(place, &number)| place == number as usize)
            );
        }
    }
}
