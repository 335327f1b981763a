// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning vCPUs that are found by samples (`policy/classify/spin_samples.h`) and not by pause-loop exits.
#![allow(missing_docs)]

use unspin_lab::{Lab, Outcome, run};
use unspin_scenario::Scenario;

/// Four vCPUs of each of two silent VMs on two CPUs; times are drawn, so that holders are preempted.
const TICKET: &str = include_str!("../../../../scenarios/compare/ticket.toml");
const COSTS: &str = include_str!("../../../../scenarios/lab/testbed.costs.toml");

fn run_with(policy: &str, host: &str, vendor: &str) -> Outcome {
    let text = TICKET
        .replace("ple_window = 200\n", "")
        .replace("ple_window_fixed = true", host)
        .replace("\"300 loops\"", "{ exponential = \"300 loops\" }")
        .replace("\"3000 loops\"", "{ exponential = \"3000 loops\" }")
        .replace("pv_page = true ", "pv_page = false ")
        .replace("count = 1\n", "count = 2\n");
    let lab = format!(
        "host_noise = \"off\"\nscheduler = \"steer\"\npolicy = \"{policy}\"\nvendor = \"{vendor}\""
    );
    let text = format!("{text}\n[lab]\n{lab}\n[lab.costs]\n{COSTS}");
    let scenario =
        Scenario::parse(&text, "ticket.toml").unwrap_or_else(|error| panic!("{}", error.plain()));
    let lab = Lab::new(&scenario).expect("a lab");
    let mut world = lab.world(&scenario, ()).expect("a world");
    run(&mut world, &scenario, |_| {}).expect("it runs")
}

const WINDOW: &str = "ple_window = 200\nple_window_fixed = true";

#[test]
fn samples_find_waiters_before_their_window_is_over() {
    let done = |policy: &str| run_with(policy, WINDOW, "amd").operations(None);
    let without = done("loan-cpl,kernel-exit");
    let with = done("loan-cpl,kernel-exit,spin-samples");
    println!("{without} without, {with} with");
    assert!(with > 2 * without, "{with} with, {without} without");
}

/// The places where a guest waits come from pause-loop exits and are read from the VMCB: without either nothing changes.
#[test]
fn nobody_is_sampled_whose_places_are_not_known() {
    for (host, vendor) in [(WINDOW, "intel"), ("ple_window = 65535", "amd")] {
        let [with, without] = ["loan-cpl,kernel-exit,spin-samples", "loan-cpl,kernel-exit"]
            .map(|policy| run_with(policy, host, vendor).operations(None));
        assert_eq!(with, without, "{host}, {vendor}");
    }
}
