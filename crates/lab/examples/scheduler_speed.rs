// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the cost of a host scheduler's calls: ten tasks for each pCPU, ten in a group, are woken, run and put to
//! sleep again. Prints the wall time, ns, of a round of pick, tick, put, wake and preemption check.

use std::time::Instant;
use unspin_lab::ids::{Cpu, Group, Task};
use unspin_lab::scheduler::{Allowed, Enqueue, names};
use unspin_lab::topology::Topology;

fn round_ns(name: &str, cpus: u32, grouped: bool) -> f64 {
    let topology = Topology::new(cpus.div_ceil(40), 1, cpus.min(40), 1).expect("pCPUs");
    let cpus = topology.cpus();
    let mut scheduler = names::from_name(name, topology, 1).expect("a known name");
    let groups: Vec<Group> = (0..cpus)
        .map(|_| {
            if grouped {
                scheduler.add_group(Group(0), 1024)
            } else {
                Group(0)
            }
        })
        .collect();
    for task in 0..cpus * 10 {
        let family = task / 10;
        let id = scheduler.add_task(groups[family as usize], 1024, Allowed::All, Some(family));
        let cpu = scheduler.select_cpu(0, id, None);
        scheduler.enqueue(0, id, cpu, Enqueue::New);
    }
    let (mut now_ns, mut rounds) = (0, 0_u64);
    let mut start = Instant::now();
    for slice in 0..3_000_000_u64.div_ceil(u64::from(cpus)) {
        if slice == 1_000_000 / u64::from(cpus) {
            (start, rounds) = (Instant::now(), 0);
        }
        for cpu in 0..cpus {
            let cpu = Cpu(cpu);
            now_ns += 50_000 / u64::from(cpus);
            let Some(task) = scheduler.pick_next(now_ns, cpu) else {
                continue;
            };
            now_ns += 1_000;
            scheduler.tick(now_ns, cpu);
            let sleeps = (slice + u64::from(task.0)) % 3 == 0;
            scheduler.put_previous(now_ns, cpu, !sleeps);
            if sleeps {
                wake(&mut *scheduler, now_ns + 500, task);
            }
            rounds += 1;
        }
    }
    start.elapsed().as_nanos() as f64 / rounds as f64
}

fn wake(scheduler: &mut dyn unspin_lab::scheduler::HostScheduler, now_ns: u64, task: Task) {
    let cpu = scheduler.select_cpu(now_ns, task, None);
    scheduler.enqueue(now_ns, task, cpu, Enqueue::Wakeup);
    scheduler.wakeup_preempts(now_ns, cpu, task);
}

fn main() {
    println!(
        "{:<12} {:>8} {:>8} {:>8} {:>8}",
        "ns a round", "8", "8 groups", "80", "800"
    );
    for name in names::known_names() {
        let ns = [(8, false), (8, true), (80, true), (800, true)]
            .map(|(cpus, grouped)| round_ns(name, cpus, grouped));
        println!(
            "{name:<12} {:>8.0} {:>8.0} {:>8.0} {:>8.0}",
            ns[0], ns[1], ns[2], ns[3]
        );
    }
}
