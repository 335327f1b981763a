// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which threads wake a VM's vCPUs for I/O.

use std::collections::{BTreeMap, HashMap, HashSet};

use unspin_events::facts::Facts;

/// Threads by what they are to VMs.
#[derive(Clone, Debug, Default)]
pub struct Wakers {
    /// Process of each VM.
    processes: BTreeMap<u32, u32>,
    /// Threads that served any vCPU.
    vcpu_threads: HashSet<u32>,
    /// Incarnations of each thread: since when, its process, and whose vhost thread it is.
    threads: HashMap<u32, Vec<Incarnation>>,
}

#[derive(Clone, Copy, Debug)]
struct Incarnation {
    since_ns: u64,
    process: Option<u32>,
    vhost_of: Option<u32>,
}

impl Wakers {
    /// As the facts have them.
    pub fn of(facts: &Facts) -> Wakers {
        let mut threads: HashMap<u32, Vec<Incarnation>> = HashMap::new();
        for task in &facts.tasks {
            // The kernel calls the thread of a VMM's vhost device so (drivers/vhost/vhost.c, Linux 7.2).
            let vhost_of = task.comm.strip_prefix("vhost-");
            threads.entry(task.thread).or_default().push(Incarnation {
                since_ns: task.first_seen_ns,
                process: task.process,
                vhost_of: vhost_of.and_then(|process| process.parse().ok()),
            });
        }
        let vcpus = facts.vms.iter().flat_map(|vm| &vm.vcpus);
        Wakers {
            processes: facts
                .vms
                .iter()
                .filter_map(|vm| Some((vm.vm, vm.process?)))
                .collect(),
            vcpu_threads: vcpus.map(|vcpu| vcpu.thread).collect(),
            threads,
        }
    }

    /// Whether that thread, which woke a vCPU of the VM then, did it for I/O: a thread of its VMM that serves no vCPU, or its vhost
    /// thread. An interrupt on an idle CPU (thread 0) may be a timer's.
    pub fn is_io(&self, vm: u32, waker: u32, time_ns: u64) -> bool {
        let Some(process) = self.processes.get(&vm).filter(|_| waker != 0) else {
            return false;
        };
        let known = self.threads.get(&waker).and_then(|incarnations| {
            let later = incarnations.partition_point(|known| known.since_ns <= time_ns);
            incarnations.get(later.saturating_sub(1))
        });
        known.is_some_and(|known| {
            let own = known.process == Some(*process) && !self.vcpu_threads.contains(&waker);
            own || known.vhost_of == Some(*process)
        })
    }
}

#[cfg(test)]
mod tests {
    use unspin_events::facts::{TaskFacts, VcpuFacts, VmFacts};

    use super::*;

    #[test]
    fn own_threads_but_vcpus_and_vhost_wake_for_io() {
        let task = |thread, process, comm: &str, first_seen_ns| TaskFacts {
            thread,
            process: Some(process),
            comm: comm.to_owned(),
            first_seen_ns,
            start_ticks: None,
        };
        let facts = Facts {
            vms: vec![VmFacts {
                vm: 3,
                process: Some(100),
                vcpus: vec![VcpuFacts {
                    vcpu: 0,
                    thread: 101,
                    ..VcpuFacts::default()
                }],
                ..VmFacts::default()
            }],
            tasks: vec![
                task(101, 100, "CPU 0/KVM", 0),
                task(102, 100, "IO iothread1", 0),
                task(55, 2, "vhost-100", 0),
                task(56, 2, "vhost-999", 0),
                task(57, 9, "sh", 0),
                task(57, 100, "worker", 50),
            ],
            ..Facts::default()
        };
        let wakers = Wakers::of(&facts);
        let io = |waker, time_ns| wakers.is_io(3, waker, time_ns);
        assert!(io(102, 10) && io(55, 10));
        assert!(!io(101, 10) && !io(56, 10) && !io(0, 10) && !io(777, 10));
        assert!(!io(57, 49) && io(57, 50), "a reused thread");
        assert!(!wakers.is_io(4, 102, 10));
    }
}
