// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of the lab itself: worlds with locks, shootdowns, wake-ups and ticks under overcommitment.

use std::io::Write;

use crate::checker::{check_all, save};
use crate::common::Expected;
use unspin_lab::{
    LabHost, World,
    costs::Costs,
    host_noise::NoiseModel,
    ids::{Cpu, Task},
    perfetto::{PerfettoWriter, TraceIds},
    scheduler::RoundRobin,
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use unspin_scenario::{HostNoise, Scenario};

/// The writer, and a count of the events it receives.
struct Counting<W: Write> {
    writer: PerfettoWriter<W>,
    seen: Expected,
}

impl<W: Write> Observer for Counting<W> {
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent) {
        let kind = match what {
            TraceEvent::SwitchIn { .. } => Some("switch_ins"),
            TraceEvent::Wakeup { .. } => Some("wakings"),
            TraceEvent::LockAsked { .. } => Some("waits"),
            TraceEvent::LockTaken { .. } => Some("holds"),
            TraceEvent::InterruptTaken { .. } => Some("interrupts"),
            _ => None,
        };
        if let Some(kind) = kind {
            *self.seen.entry(kind).or_default() += 1;
        }
        self.writer.on_event(now_ns, cpu, task, what);
    }
}

/// The trace of a world, and what it must contain.
fn trace(lock: &str, cpus: u32, end_ns: u64) -> (Vec<u8>, Expected) {
    let text = format!(
        "seed = 5\nduration = \"1s\"\n[[vm]]\ncount = 2\nvcpus = 4\nlock = \"{lock}\"\nlocks = 2\nhold = \"3us\"\n\
         user_work = {{ exponential = \"10us\" }}\nkernel_work = \"1us\"\nshootdown_every_iterations = 5\n\
         wakeup_every_iterations = 3\ntick_hz = 1000\n"
    );
    let scenario = Scenario::parse(&text, "lab.toml").expect("it is in range");
    let noise = match cpus {
        1 => HostNoise::Off,
        _ => HostNoise::Busy,
    };
    let host = LabHost {
        cpu_hogs: 1,
        noise: NoiseModel::of(&noise, true),
        ..LabHost::new(Topology::flat(cpus).expect("a few pCPUs"))
    };
    let observer = Counting {
        writer: PerfettoWriter::new(Vec::new(), TraceIds::of(&scenario, &host)),
        seen: Expected::new(),
    };
    let scheduler = Box::new(RoundRobin::new(cpus, 1_000_000));
    let world = World::new(&scenario, host, Costs::default(), scheduler, observer);
    let mut world = world.expect("a small world");
    world.run_until(end_ns).expect("it makes progress");
    let Counting { writer, seen } = world.into_observer();
    let (trace, written) = writer.finish(end_ns).expect("a Vec takes it");
    assert_eq!(written.unattributed, 0);
    (trace, seen)
}

#[test]
fn worlds_are_decoded_as_they_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut traces = Vec::new();
    for lock in ["ticket", "test_and_set", "preemptable_ticket"] {
        for cpus in [1, 3] {
            let (trace, seen) = trace(lock, cpus, 30_000_000);
            for kind in ["switch_ins", "wakings", "waits", "holds", "interrupts"] {
                assert!(
                    seen.get(kind).is_some_and(|count| *count > 5),
                    "{lock} {cpus}: {seen:?}"
                );
            }
            traces.push(save(folder.path(), &format!("{lock}{cpus}"), &trace, &seen));
        }
    }
    check_all(&traces);
}

/// The same world gives the same trace, byte for byte.
#[test]
fn the_same_seed_is_the_same_trace() {
    assert!(trace("ticket", 2, 5_000_000).0 == trace("ticket", 2, 5_000_000).0);
}
