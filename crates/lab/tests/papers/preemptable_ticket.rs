// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ouyang and Lange, VEE'13, Figure 1, reproduced in the lab: N1 holds the lock, N2 to N5 wait, N2 is preempted.
#![allow(missing_docs)]

use crate::common::scripted::Scripted;
use unspin_lab::{
    LabHost, World,
    costs::Costs,
    ids::{Cpu, Task},
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use unspin_policy::{Control, Vendor, WindowRule};
use unspin_scenario::Scenario;

const NODES: u32 = 5;
/// Less than tau, as section 4.3 requires.
const HOLD_NS: u64 = 300_000;
/// N2 is preempted while N1 holds the lock, and resumes while N3 does.
const AWAY: (u32, u64, u64) = (1, 100_000, 900_000);

/// Times of acquisition and release, by node 1 to 5, in order of acquisition.
#[derive(Default)]
struct Stages {
    taken: Vec<(u32, u64)>,
    released: Vec<(u32, u64)>,
}

impl Observer for Stages {
    fn on_event(&mut self, now_ns: u64, _: Cpu, task: Option<Task>, what: TraceEvent) {
        let node = task.map_or(0, |task| task.0 + 1);
        match what {
            TraceEvent::LockTaken { .. } => self.taken.push((node, now_ns)),
            TraceEvent::LockReleased { .. } => self.released.push((node, now_ns)),
            _ => {}
        }
    }
}

fn play(lock: &str, tau_spins: u32) -> Stages {
    let text = format!(
        "seed = 1\niterations = 1\n[[vm]]\nvcpus = {NODES}\nlock = \"{lock}\"\nlocks = 1\nuser_work = \"1us\"\nkernel_work = \"0ns\"\n\
         hold = \"{HOLD_NS}ns\"\ntick_hz = 0\npause_every_spins = 1\n"
    );
    let scenario = Scenario::parse(&text, "figure-1.toml").expect("a scenario");
    let host = LabHost {
        window: WindowRule::new(Control::Off, Vendor::Amd),
        cpu_hogs: NODES,
        tau_spins,
        ..LabHost::new(Topology::flat(NODES).expect("pCPUs"))
    };
    let scheduler = Scripted::new(NODES, &[AWAY]);
    let world = World::new(
        &scenario,
        host,
        Costs::default(),
        Box::new(scheduler),
        Stages::default(),
    );
    let mut world = world.expect("a world");
    world.run_until(1 << 40).expect("it ends");
    world.into_observer()
}

fn order(stages: &Stages) -> Vec<u32> {
    stages.taken.iter().map(|(node, _)| *node).collect()
}

/// A few accesses, an interrupt, an entry.
const SLACK_NS: u64 = 5_000;

#[test]
fn figure_1_n3_times_out_and_n2_follows_at_once() {
    let costs = Costs::default();
    let tau_spins = 16_384u64;
    let tau_ns = tau_spins * u64::from(costs.wait_spin_ps + costs.pause_ps) / 1_000;
    let stages = play("preemptable_ticket", 16_384);
    assert_eq!(order(&stages), [1, 3, 2, 4, 5]);
    let taken_ns = |node: u32| {
        stages
            .taken
            .iter()
            .find(|(who, _)| *who == node)
            .expect("taken")
            .1
    };
    let released_ns = |node: u32| {
        stages
            .released
            .iter()
            .find(|(who, _)| *who == node)
            .expect("released")
            .1
    };
    // (b) to (c): the threshold of N3, now first behind N2, is 1 x tau and counts from N1's release (ruling 8).
    let waited_ns = taken_ns(3) - released_ns(1);
    assert!(
        (tau_ns..tau_ns + SLACK_NS).contains(&waited_ns),
        "{waited_ns} of {tau_ns}"
    );
    // (d): N4 has not reached its threshold; N2 was passed and takes the lock immediately.
    assert!(
        taken_ns(3) < AWAY.2 && AWAY.2 < released_ns(3),
        "N2 comes back while N3 holds the lock"
    );
    assert!(taken_ns(2) - released_ns(3) < SLACK_NS);
    // From then on the order is that of the tickets, without time-outs.
    assert!(taken_ns(4) - released_ns(2) < SLACK_NS && taken_ns(5) - released_ns(4) < SLACK_NS);
}

/// The same with a ticket lock, and with tau infinity: all wait for N2.
#[test]
fn figure_1_with_a_ticket_lock_everybody_waits_for_n2() {
    for (lock, tau_spins) in [("ticket", 0), ("preemptable_ticket", u32::MAX)] {
        let stages = play(lock, tau_spins);
        assert_eq!(order(&stages), [1, 2, 3, 4, 5], "{lock}");
        let (free_ns, taken_ns) = (stages.released[0].1, stages.taken[1].1);
        assert!(free_ns < AWAY.1 + HOLD_NS + SLACK_NS, "{lock}: {free_ns}");
        assert!(
            (AWAY.2..AWAY.2 + SLACK_NS).contains(&taken_ns),
            "{lock}: free from {free_ns} to {taken_ns}"
        );
    }
}

/// tau = 0: a generic spinlock, which any running vCPU may take next. N2 finds the lock taken and waits no longer than
/// others.
#[test]
fn figure_1_with_tau_0_nobody_waits_for_n2() {
    for (lock, tau_spins) in [("test_and_test_and_set", 0), ("preemptable_ticket", 0)] {
        let stages = play(lock, tau_spins);
        let third = stages.taken[1];
        assert_ne!(third.0, 2, "{lock}");
        assert!(
            third.1 - stages.released[0].1 < SLACK_NS,
            "{lock}: {:?}",
            stages.taken
        );
    }
}
