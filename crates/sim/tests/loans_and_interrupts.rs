// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loans go to who waits for a lock or holds one. Who has not answered an interrupt does neither, and was often stopped in user
//! mode: where a rule of candidates knows it, it runs all the same (policy/loan.h).
#![allow(missing_docs)]

use unspin_scenario::Scenario;
use unspin_sim::{Laboratory, Outcome, run};

/// VMs that wait for the answers to TLB shootdowns, beside one that only computes; its guests give no hints.
const SHOOTDOWNS: &str = include_str!("../../../scenarios/vee21/shootdown-2.toml");

/// Exits and switches that cost something: those of the testbed.
const COSTS: &str = include_str!("../../../scenarios/lab/testbed.costs.toml");

/// Operations of the VMs together in a second.
fn operations(policy: &str) -> u64 {
    let lab = format!("scheduler = \"steer\"\npolicy = \"{policy}\"");
    let text = format!("{SHOOTDOWNS}\n[lab]\n{lab}\n[lab.costs]\n{COSTS}");
    let scenario = Scenario::parse(&text, "shootdown-2.toml")
        .unwrap_or_else(|error| panic!("{}", error.plain()));
    let laboratory = Laboratory::new(&scenario).expect("a lab");
    let mut world = laboratory.world(&scenario, ()).expect("a world");
    let outcome: Outcome = run(&mut world, &scenario, |_| {}).expect("it runs");
    let operations = outcome.operations(None);
    println!("{policy}: {operations}");
    operations
}

/// Before loan-cpl was told, it left such waiters a quarter of what directed yields do for them.
#[test]
fn who_has_not_answered_runs_beside_a_loan() {
    let directed = operations("directed-yield,candidates=strict");
    for loan in ["loan-cpl", "loan", "loan,loan-cpl,kernel-exit"] {
        let lent = operations(&format!("{loan},candidates=strict"));
        assert!(lent * 10 > directed * 8, "{loan}: {lent} of {directed}");
    }
}
