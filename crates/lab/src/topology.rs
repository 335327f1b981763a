// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pCPUs share: sockets, last-level caches, cores with hardware threads.

use crate::ids::Cpu;

/// The largest number of pCPUs of a model.
pub const CPUS_MAX: u32 = 4_096;

/// Sockets x caches x cores x threads, numbered with threads innermost: with two threads per core CPUs 0 and 1 are the
/// first core. (Linux numbers siblings apart on many machines; the model does not need that.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    sockets: u32,
    caches_per_socket: u32,
    cores_per_cache: u32,
    threads_per_core: u32,
}

/// The distance of two pCPUs, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// The same pCPU.
    Itself,
    /// Hardware threads of one core.
    Core,
    /// One last-level cache.
    Cache,
    /// One socket.
    Socket,
    /// Different sockets.
    Machine,
}

impl Distance {
    /// All distances, nearest first.
    pub const ALL: [Distance; 5] = [
        Distance::Itself,
        Distance::Core,
        Distance::Cache,
        Distance::Socket,
        Distance::Machine,
    ];
}

impl Topology {
    /// That many of each, 1 or more; `None` for zero or more than [`CPUS_MAX`] pCPUs.
    pub fn new(
        sockets: u32,
        caches_per_socket: u32,
        cores_per_cache: u32,
        threads_per_core: u32,
    ) -> Option<Topology> {
        let topology = Topology {
            sockets,
            caches_per_socket,
            cores_per_cache,
            threads_per_core,
        };
        let cpus = [caches_per_socket, cores_per_cache, threads_per_core]
            .iter()
            .try_fold(sockets, |product, count| product.checked_mul(*count))?;
        (1..=CPUS_MAX).contains(&cpus).then_some(topology)
    }

    /// One socket with one cache and cores of one thread; `None` as in [`Topology::new`].
    pub fn flat(cpus: u32) -> Option<Topology> {
        Topology::new(1, 1, cpus, 1)
    }

    /// Number of pCPUs.
    pub const fn cpus(&self) -> u32 {
        self.sockets * self.caches_per_socket * self.cores_per_cache * self.threads_per_core
    }

    /// Number of hardware threads of a core.
    pub const fn threads_per_core(&self) -> u32 {
        self.threads_per_core
    }

    /// The first pCPU of the core, cache, socket or machine that contains this one, and their number.
    pub const fn around(&self, cpu: Cpu, distance: Distance) -> (Cpu, u32) {
        let size = match distance {
            Distance::Itself => 1,
            Distance::Core => self.threads_per_core,
            Distance::Cache => self.threads_per_core * self.cores_per_cache,
            Distance::Socket => {
                self.threads_per_core * self.cores_per_cache * self.caches_per_socket
            }
            Distance::Machine => self.cpus(),
        };
        (Cpu(cpu.0 / size * size), size)
    }

    /// The distance of two pCPUs.
    pub fn distance(&self, one: Cpu, other: Cpu) -> Distance {
        let together =
            |distance: &Distance| self.around(one, *distance).0 == self.around(other, *distance).0;
        let nearest = Distance::ALL.into_iter().find(together);
        nearest.unwrap_or(Distance::Machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_what_they_should() {
        let topology = Topology::new(2, 2, 2, 2).expect("16 CPUs");
        assert_eq!(topology.cpus(), 16);
        let from_0 = |cpu| topology.distance(Cpu(0), Cpu(cpu));
        assert_eq!(from_0(0), Distance::Itself);
        assert_eq!(from_0(1), Distance::Core);
        assert_eq!(from_0(2), Distance::Cache);
        assert_eq!(from_0(4), Distance::Socket);
        assert_eq!(from_0(8), Distance::Machine);
        assert_eq!(topology.around(Cpu(5), Distance::Cache), (Cpu(4), 4));
        assert_eq!(Topology::new(0, 1, 1, 1), None);
        assert_eq!(Topology::new(1 << 16, 1 << 16, 1, 1), None);
    }
}
