// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ishiguro et al., VEE'21, in the lab, with guests that wait and hold locks: scheduler mismatch with and without the
//! debooster (Figure 2 and section 4.1), lost opportunity and strict boost (the rule of Figure 1 and section 4.2).
//! Single calls of a scheduler are tested in tests/schedulers/debooster.rs.
#![allow(missing_docs)]

use unspin_lab::{
    LabHost, World,
    costs::Costs,
    ids::{Cpu, Task},
    scheduler::from_name,
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use unspin_policy::{CandidateRule, Control, Vendor, WindowRule};
use unspin_scenario::Scenario;

/// The outcomes of directed yields on one pCPU (ruling 28, without the reasons).
#[derive(Clone, Debug, Default)]
struct Yields {
    open: Option<(Task, Task)>,
    success: u32,
    mismatch: u32,
    exits: u32,
    without_candidate: u32,
    /// Exits of one vCPU in a row, without another running in between.
    in_a_row: u32,
    longest: u32,
}

impl Observer for Yields {
    fn on_event(&mut self, _: u64, _: Cpu, task: Option<Task>, what: TraceEvent) {
        match what {
            TraceEvent::PauseExit { .. } => {
                self.exits += 1;
                self.in_a_row += 1;
                self.longest = self.longest.max(self.in_a_row);
                self.open = None;
                self.without_candidate += 1;
            }
            TraceEvent::YieldTo { target, result } if result > 0 => {
                self.open = task.map(|spinner| (spinner, target));
                self.without_candidate -= 1;
            }
            TraceEvent::SwitchIn { task } => {
                self.in_a_row = 0;
                if let Some((_, target)) = self.open.take() {
                    self.success += u32::from(task == target);
                }
            }
            // The spinner continues: the scheduler chose it again.
            TraceEvent::Entry => {
                if let Some((spinner, _)) = self.open.filter(|(spinner, _)| task == Some(*spinner))
                {
                    debug_assert_eq!(task, Some(spinner));
                    self.mismatch += 1;
                    self.open = None;
                }
            }
            _ => {}
        }
    }
}

fn run(scheduler: &str, candidates: CandidateRule, cpus: u32, vms: &str) -> (u64, Yields) {
    let text = format!("seed = 21\niterations = 400\n{vms}");
    let scenario = Scenario::parse(&text, "vee21.toml").expect("a scenario");
    let topology = Topology::flat(cpus).expect("pCPUs");
    let host = LabHost {
        candidates,
        window: WindowRule::new(Control::Fixed, Vendor::Amd).with_base(700),
        ..LabHost::new(topology)
    };
    let scheduler = from_name(scheduler, topology, 1).expect("a name");
    let observer = Yields::default();
    let world = World::new(&scenario, host, Costs::default(), scheduler, observer);
    let mut world = world.expect("a world");
    world.run_until(1 << 44).expect("it ends");
    (world.now_ns(), world.into_observer())
}

/// Eight vCPUs of a VM on one pCPU, as in Figure 2, that wait for a lock and for one another. A vCPU that has slept
/// returns with a small virtual runtime and spins: CFS runs it again, whichever vCPU KVM boosts.
#[test]
fn figure_2_mismatch_goes_with_the_debooster() {
    let vm = "[[vm]]\nvcpus = 8\nlock = \"ticket\"\nlocks = 1\nuser_work = \"0ns\"\nkernel_work = { exponential = \"2ms\" }\n\
        hold = { exponential = \"1ms\" }\nshootdown_every_iterations = 3\nwakeup_every_iterations = 2\ntick_hz = 250\npause_every_spins = 1\n";
    let play = |name| run(name, CandidateRule::Kvm5_3, 1, vm);
    let (stock_ns, stock) = play("cfs-5.6");
    let (deboosted_ns, deboosted) = play("cfs-5.6+debooster=paper");
    println!(
        "cfs-5.6: {stock_ns} ns, {stock:?}\nwith the debooster: {deboosted_ns} ns, {deboosted:?}"
    );
    assert!(stock.mismatch > 1_000, "{stock:?}");
    assert!(deboosted.mismatch * 10 < stock.mismatch, "{deboosted:?}");
    // "In the worst scenario, PLE events occur continuously on the same vCPU for 2 x #vCPUs times": more often without
    // the debooster, because the boosted vCPU does not run.
    assert!(stock.longest > 2 * 8, "{stock:?}");
    assert!(deboosted.longest <= 2, "{deboosted:?}");
    assert!(deboosted.exits < stock.exits && deboosted_ns < stock_ns);
}

/// A vCPU waits for the answer of another that was preempted in user mode. The spinner is in kernel mode, so KVM passes
/// the receiver over (lost opportunity); strict boost has recorded the receivers of the IPI.
#[test]
fn lost_opportunities_go_with_strict_boost() {
    let vm = "[[vm]]\nvcpus = 4\nlock = \"ticket\"\nlocks = \"private\"\nuser_work = { exponential = \"400us\" }\nhold = \"1us\"\n\
        shootdown_every_iterations = 2\ntick_hz = 0\npause_every_spins = 1\n";
    let play = |rule| run("cfs-5.6+debooster=paper", rule, 2, vm);
    let (stock_ns, stock) = play(CandidateRule::Kvm5_2);
    let (strict_ns, strict) = play(CandidateRule::Strict);
    println!("KVM 5.2: {stock_ns} ns, {stock:?}\nstrict boost: {strict_ns} ns, {strict:?}");
    let lost = |yields: &Yields| f64::from(yields.without_candidate) / f64::from(yields.exits);
    assert!(lost(&strict) < lost(&stock) / 2.0);
    assert!(strict.exits * 2 < stock.exits);
    assert!(strict_ns < stock_ns);
}
