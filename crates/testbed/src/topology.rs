// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs of the emulated machine share a core, a cache and a node.

use std::{fmt, str::FromStr};

use crate::error::Error;

/// Sockets, caches of each, cores of each cache, threads of each core; written `2x2x4x1`, as `lab.topology`. Each is 1 or more.
/// A cache is QEMU's die, which has a level-3 cache of its own; a socket is a NUMA node with its part of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Sockets, and NUMA nodes.
    pub sockets: u32,
    /// Last-level caches of a socket.
    pub caches: u32,
    /// Cores of a cache.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
}

impl Topology {
    /// CPUs in all; saturates.
    pub fn cpus(self) -> u32 {
        [self.caches, self.cores, self.threads]
            .into_iter()
            .fold(self.sockets, u32::saturating_mul)
    }

    /// The value of QEMU's `-smp`.
    pub(crate) fn smp(self) -> String {
        let Topology {
            sockets,
            caches,
            cores,
            threads,
        } = self;
        let cpus = self.cpus();
        format!("{cpus},sockets={sockets},dies={caches},cores={cores},threads={threads}")
    }

    /// QEMU's words for its NUMA nodes; none for one socket. What does not divide goes to the first node.
    pub(crate) fn nodes(self, memory_mib: u32) -> Vec<String> {
        if self.sockets == 1 {
            return Vec::new();
        }
        let each = memory_mib / self.sockets;
        let of = |node| {
            if node == 0 {
                memory_mib - each * (self.sockets - 1)
            } else {
                each
            }
        };
        let words = |node: u32| {
            [
                "-object".to_owned(),
                format!("memory-backend-ram,id=node{node},size={}M", of(node)),
                "-numa".to_owned(),
                format!("node,nodeid={node},memdev=node{node}"),
                "-numa".to_owned(),
                format!("cpu,node-id={node},socket-id={node}"),
            ]
        };
        (0..self.sockets).flat_map(words).collect()
    }
}

impl FromStr for Topology {
    type Err = Error;

    fn from_str(text: &str) -> Result<Topology, Error> {
        let numbers: Option<Vec<u32>> = text
            .split('x')
            .map(|number| number.parse().ok().filter(|&number| number > 0))
            .collect();
        match numbers.as_deref() {
            Some(&[sockets, caches, cores, threads]) => Ok(Topology {
                sockets,
                caches,
                cores,
                threads,
            }),
            _ => Err(Error::Option(format!(
                "`{text}` is no topology: sockets x caches of each x cores of each x threads of each, as in 2x2x4x1"
            ))),
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let numbers = [self.sockets, self.caches, self.cores, self.threads];
        write!(f, "{}", numbers.map(|number| number.to_string()).join("x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let topology: Topology = "2x3x4x2".parse().expect("a topology");
        assert_eq!(topology.cpus(), 48);
        assert_eq!(topology.to_string(), "2x3x4x2");
        assert_eq!(topology.smp(), "48,sockets=2,dies=3,cores=4,threads=2");
        for wrong in [
            "",
            "2",
            "2x2",
            "2x2x2x0",
            "1x1x1x1x1",
            "2x2x2x-1",
            "axbxcxd",
        ] {
            let error = wrong.parse::<Topology>().expect_err(wrong).to_string();
            assert!(error.contains("as in 2x2x4x1"), "{error}");
        }
    }

    #[test]
    fn a_socket_is_a_node_with_its_part_of_the_memory() {
        let one: Topology = "1x2x4x1".parse().expect("a topology");
        assert!(one.nodes(2048).is_empty());
        let three: Topology = "3x1x1x1".parse().expect("a topology");
        let words = three.nodes(2048).join(" ");
        assert!(words.starts_with(
            "-object memory-backend-ram,id=node0,size=684M -numa node,nodeid=0,memdev=node0"
        ));
        assert!(words.ends_with(
            "size=682M -numa node,nodeid=2,memdev=node2 -numa cpu,node-id=2,socket-id=2"
        ));
    }

    #[test]
    fn so_many_cpus_are_too_many_for_a_number() {
        let most = u32::MAX.to_string();
        let text = format!("{most}x{most}x1x1");
        assert_eq!(
            text.parse::<Topology>().expect("a topology").cpus(),
            u32::MAX
        );
    }
}
