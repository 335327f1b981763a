// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario results in the world that it describes, and observing a run does not change it.

use unspin_lab::{Lab, Outcome, VcpuStatistics, ids::Task, run};
use unspin_scenario::Scenario;

const SCENARIO: &str = "seed = 5\nduration = \"30ms\"\nwarm_up = \"7ms\"\n[host]\ncpus = 2\nple_gap = 65535\n\
    ple_window = 200\n[[vm]]\nvcpus = 5\nlock = \"ticket\"\nhold = { exponential = \"1us\" }\n\
    user_work = { exponential = \"5us\" }\nshootdown_every_iterations = 9\nwakeup_every_iterations = 7\npv_page = true\n";

fn scenario(lab: &str) -> Scenario {
    let text = SCENARIO.replacen("[[vm]]", &format!("{lab}\n[[vm]]"), 1);
    Scenario::parse(&text, "s.toml").unwrap_or_else(|error| panic!("{}", error.plain()))
}

fn ran(scenario: &Scenario) -> Outcome {
    let lab = Lab::new(scenario).expect("a lab");
    let mut world = lab.world(scenario, ()).expect("a world");
    run(&mut world, scenario, |_| {}).expect("it runs")
}

#[test]
fn stopping_to_look_changes_nothing() {
    for table in [
        "",
        "[lab]\nscheduler = \"steer\"\npolicy = \"loan\"",
        "[lab]\nscheduler = \"cfs-4.13\"",
        "[lab]\necs = \"paper\"",
    ] {
        let scenario = scenario(table);
        let lab = Lab::new(&scenario).expect("a lab");
        let mut world = lab.world(&scenario, ()).expect("a world");
        world.run_until(30_000_000).expect("it runs");
        let at_once: Vec<(Task, VcpuStatistics)> = world
            .vcpus()
            .map(|(.., task, statistics)| (task, *statistics))
            .collect();
        let outcome = ran(&scenario);
        let stopped: Vec<(Task, VcpuStatistics)> = outcome
            .vcpus
            .iter()
            .map(|vcpu| (vcpu.task, vcpu.after.statistics))
            .collect();
        assert_eq!(at_once, stopped, "{table}");
        assert_eq!(world.trace_events(), outcome.trace_events, "{table}");
        assert_eq!(
            (outcome.end_ns, outcome.window_ns),
            (30_000_000, 23_000_000)
        );
    }
}

#[test]
fn defaults_are_the_newest_kernels() {
    let lab = Lab::new(&scenario("")).expect("a lab");
    assert_eq!(lab.scheduler(), "eevdf-7.2");
    assert_eq!(lab.host().topology.cpus(), 2);
    assert_eq!(lab.host().window.at_start(), 200);
    let large =
        scenario("[lab]\ntopology = \"2x2x2x2\"\nvendor = \"intel\"\ncosts = { tsc_mhz = 2000 }");
    let lab = Lab::new(&large).expect("a lab");
    assert_eq!(lab.host().topology.cpus(), 16);
    assert_eq!(lab.host().window_unit_ps, 500);
    assert_eq!(lab.costs().tsc_mhz, 2_000);
}

#[test]
fn a_slice_of_policies_is_the_schedulers() {
    let switches = |policy: &str| {
        let lab = format!(
            "[lab]\nscheduler = \"steer\"\npolicy = \"{policy}\"\nwindow_control = \"off\""
        );
        let outcome = ran(&scenario(&lab));
        outcome
            .vcpus
            .iter()
            .map(|vcpu| vcpu.after.statistics.preemptions)
            .sum::<u64>()
    };
    let [short, long] = ["slice=500us", "slice=20ms"].map(switches);
    assert!(short > 2 * long, "{short} {long}");
}

#[test]
fn groups_of_vcpus_share_as_their_vm_does() {
    let one = ran(&scenario(
        "[lab]\ngroups = \"vcpu\"\nwindow_control = \"off\"\nhost_noise = \"off\"",
    ));
    let running: Vec<u64> = one
        .vcpus
        .iter()
        .map(|vcpu| vcpu.after.times.running_ns)
        .collect();
    let sum: u64 = running.iter().sum();
    assert!(running.iter().all(|ns| ns * 5 * 2 > sum), "{running:?}");
}

#[test]
fn a_run_of_slices_ends_with_its_last_slice() {
    let text =
        "iterations = 3\n[host]\ncpus = 1\n[[vm]]\nvcpus = 2\nlock = \"ticket\"\nhold = \"1us\"\n";
    let scenario = Scenario::parse(text, "s.toml").expect("valid");
    let outcome = ran(&scenario);
    assert!(outcome.vcpus.iter().all(|vcpu| vcpu.operations() == 3));
    assert!((1..1_000_000_000).contains(&outcome.end_ns));
    assert_eq!(outcome.window_ns, outcome.end_ns);
}

#[test]
fn gang_refuses_what_would_starve_a_part_of_one() {
    for (lab, word) in [
        ("[lab]\nscheduler = \"gang\"\npins = [\"0\"]", "lab.pins"),
        (
            "[lab]\nscheduler = \"gang+slot-ms=5\"\necs = \"give-back\"",
            "lab.ecs",
        ),
    ] {
        let Err(refused) = Lab::new(&scenario(lab)) else {
            panic!("{lab} is not refused");
        };
        assert!(refused.to_string().starts_with(word), "{refused}");
    }
    ran(&scenario("[lab]\nscheduler = \"gang\""));
}

#[test]
fn auto_goes_alone_and_under_our_scheduler() {
    let refused = |table: &str| Lab::new(&scenario(table)).expect_err("refused").to_string();
    let beside = refused("[lab]\nscheduler = \"steer\"\npolicy = \"auto,loan\"");
    assert!(beside.contains("it goes alone"), "{beside}");
    let under = refused("[lab]\npolicy = \"auto\"");
    assert!(under.contains("lab.scheduler = \"steer\""), "{under}");
}
