// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policy `auto` in the lab: each VM's policies are chosen by trial.
#![allow(missing_docs)]

use unspin_lab::{Lab, Outcome, run};
use unspin_policy::auto::{AutoReason, AutoSet, AutoStep};
use unspin_scenario::Scenario;

const TICKET: &str = include_str!("../../../../scenarios/compare/ticket.toml");
const COSTS: &str = include_str!("../../../../scenarios/lab/testbed.costs.toml");

/// Two silent VMs of four vCPUs on two CPUs, 30 s of which the first 26 are left out; times are drawn, so that holders are preempted.
/// `second`: the lock of the second VM.
fn run_with(policy: &str, seed: u64, second: Option<&str>) -> Outcome {
    let mut text = TICKET
        .replace("seed = 1", &format!("seed = {seed}"))
        .replace("\"750ms\"", "\"30s\"")
        .replace("\"250ms\"", "\"26s\"")
        .replace("\"300 loops\"", "{ exponential = \"300 loops\" }")
        .replace("\"3000 loops\"", "{ exponential = \"3000 loops\" }")
        .replace("pv_page = true ", "pv_page = false ");
    match second {
        None => text = text.replace("count = 1\n", "count = 2\n"),
        Some(locks) => {
            let vm = "[[vm]]\ncount = 1\nvcpus = 4\nlock = \"ticket\"\nuser_work = \"3000 loops\"\nhold = \"300 loops\"\n";
            text = format!("{text}\n{vm}locks = \"{locks}\"\n");
        }
    }
    let text = format!(
        "{text}\n[lab]\nhost_noise = \"off\"\nscheduler = \"steer\"\npolicy = \"{policy}\"\n[lab.costs]\n{COSTS}"
    );
    let scenario =
        Scenario::parse(&text, "ticket.toml").unwrap_or_else(|error| panic!("{}", error.plain()));
    let lab = Lab::new(&scenario).expect("a lab");
    let mut world = lab.world(&scenario, ()).expect("a world");
    run(&mut world, &scenario, |_| {}).expect("it runs")
}

fn of(outcome: &Outcome, vm: u32) -> impl Iterator<Item = &AutoStep> {
    outcome.auto_steps.iter().filter(move |step| step.vm == vm)
}

/// Each VM by itself, within 3 %.
#[test]
fn each_vm_ends_with_the_set_under_which_it_does_most() {
    for seed in 1..=3 {
        let auto = run_with("auto", seed, None);
        let fixed = AutoSet::all().map(|set| run_with(&set.policies().to_string(), seed, None));
        let most = fixed.map(|outcome| outcome.operations(None)).max();
        let (most, done) = (most.expect("there are four"), auto.operations(None));
        println!("seed {seed}: {done} of {most}");
        assert!(done * 100 > most * 97, "seed {seed}: {done} of {most}");
        for vm in 0..2 {
            let last = of(&auto, vm).last().expect("epochs");
            assert!(last.acting != AutoSet::FIRST, "seed {seed}: {last:?}");
        }
    }
}

/// An epoch takes 250 ms, and what one VM does is no evidence about another.
#[test]
fn a_vm_that_does_not_spin_is_left_alone_beside_one_that_does() {
    let outcome = run_with("auto", 1, Some("private"));
    assert_eq!(outcome.auto_steps.len(), 2 * 30 * 4);
    let better = |step: &AutoStep| step.reason == AutoReason::Better;
    assert!(of(&outcome, 0).any(better));
    for step in of(&outcome, 1) {
        assert_eq!(step.reason, AutoReason::GoesOn, "{step:?}");
        assert_eq!(step.ran_under, AutoSet::FIRST);
        assert_eq!(step.grown.spin_ns, 0);
    }
}

#[test]
fn the_same_seed_makes_the_same_choices() {
    let [first, again, other] = [1, 1, 2].map(|seed| run_with("auto", seed, None));
    assert!(first == again);
    assert!(first.auto_steps != other.auto_steps);
}
