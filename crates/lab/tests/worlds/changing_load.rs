// SPDX-License-Identifier: MIT OR Apache-2.0
//! A VM whose load changes: locks without shootdowns, then shootdowns and a lock of each vCPU's own.
#![allow(missing_docs)]

use unspin_lab::{Lab, Outcome, run};
use unspin_scenario::{Overrides, Scenario};

const CHANGING: &str = include_str!("../../../../scenarios/auto/changing-load.toml");
const COSTS: &str = include_str!("../../../../scenarios/lab/testbed.costs.toml");

fn run_with(set: &[&str]) -> Outcome {
    let text = format!("{CHANGING}\n[lab]\nscheduler = \"steer\"\n[lab.costs]\n{COSTS}");
    run_text(&text, set)
}

fn run_text(text: &str, set: &[&str]) -> Outcome {
    let mut overrides = Overrides::default();
    for assignment in set {
        overrides.set(assignment).expect("a setting");
    }
    let scenario = Scenario::parse_with(text, "changing-load.toml", "load", &overrides)
        .unwrap_or_else(|error| panic!("{}", error.plain()));
    let lab = Lab::new(&scenario).expect("a lab");
    let mut world = lab.world(&scenario, ()).expect("a world");
    run(&mut world, &scenario, |_| {}).expect("it runs")
}

/// What all vCPUs did in one phase: iterations, shootdowns sent, and lock waits' preemptions.
fn phase(number: u64) -> (u64, u64) {
    let (begin, end) = (number * 100, (number + 1) * 100);
    let outcome = run_with(&[
        "vm.load_changes_every_ms=100",
        "lab.policy=\"loan,loan-cpl,kernel-exit,candidates=strict,spin-samples\"",
        &format!("warm_up={begin}ms"),
        &format!("duration={end}ms"),
    ]);
    let sent = outcome
        .vcpus
        .iter()
        .map(|vcpu| vcpu.after.statistics.shootdowns - vcpu.before.statistics.shootdowns);
    (outcome.operations(None), sent.sum())
}

#[test]
fn shootdowns_are_of_every_second_phase() {
    for number in 0..6 {
        let (done, sent) = phase(number);
        println!("phase {number}: {done} iterations, {sent} shootdowns");
        assert!(done > 100, "phase {number}: {done}");
        let expected = if number % 2 == 0 { 0 } else { done / 20 };
        // Each vCPU of eight may be in the middle of its twenty, and of an iteration that began before the change.
        assert!(
            sent.abs_diff(expected) <= 16,
            "phase {number}: {sent} of {expected}"
        );
    }
}

/// Of what is done by a choice that is right at once, the best fixed set for each of the two.
#[test]
fn auto_knows_a_load_that_is_back() {
    let of = |policy: &str, load: &[&str]| {
        let policy = format!("lab.policy=\"{policy}\"");
        let set: Vec<&str> = [policy.as_str()]
            .into_iter()
            .chain(load.iter().copied())
            .collect();
        run_with(&set).operations(None)
    };
    let short = ["vm.load_changes_every_ms=0", "duration=2s", "warm_up=1s"];
    let locks = [&short[..], &["vm.shootdown_every_iterations=0"]].concat();
    let shootdowns = [&short[..], &["vm.locks=\"private\""]].concat();
    let best = of("loan,loan-cpl,kernel-exit,spin-samples", &locks)
        + of("kernel-exit,candidates=strict", &shootdowns);
    // In the 20 s that count each load is there for 10.
    let (auto, oracle) = (of("auto", &[]), 10 * best);
    println!("{auto} of {oracle}");
    assert!(auto * 100 > oracle * 85, "{auto} of {oracle}");
}

/// A VM whose load changes with the epochs, so as to spoil trials: it gets no more than its share of time, and its neighbour gets the
/// set that is best for it, and does as much work.
#[test]
fn who_changes_with_the_epochs_gains_nothing_and_moves_no_other() {
    let with = |every_ms: u32| {
        let neighbour = CHANGING.replace("count = 2", "count = 1").replace(
            "load_changes_every_ms = 5000",
            &format!("load_changes_every_ms = {every_ms}"),
        );
        let victim = "[[vm]]\nvcpus = 4\nlock = \"ticket\"\nuser_work = \"3000 loops\"\nhold = \"300 loops\"\n";
        let text = format!(
            "{neighbour}{victim}[lab]\nscheduler = \"steer\"\npolicy = \"auto\"\n[lab.costs]\n{COSTS}"
        );
        run_text(&text, &[])
    };
    let time = |outcome: &Outcome, vm| {
        let own = outcome.vcpus.iter().filter(|vcpu| vcpu.vm == vm);
        own.map(|vcpu| vcpu.after.times.running_ns - vcpu.before.times.running_ns)
            .sum::<u64>()
    };
    let calm = with(0);
    for every_ms in [100, 250, 500, 1_000] {
        let restless = with(every_ms);
        let (done, calmly) = (restless.operations(Some(1)), calm.operations(Some(1)));
        let (own, all) = (time(&restless, 0), time(&restless, 0) + time(&restless, 1));
        println!("{every_ms} ms: {done} of {calmly}; {own} of {all} ns");
        assert!(
            done * 100 > calmly * 97,
            "{every_ms} ms: {done} of {calmly}"
        );
        assert!(own * 100 < all * 51, "{every_ms} ms: {own} of {all} ns");
    }
}
