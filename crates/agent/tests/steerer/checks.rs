// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of the scheduler, whatever the policy. Each check attaches and detaches by itself.

use std::{
    fs,
    hint::black_box,
    process::Command,
    time::{Duration, Instant},
};

use unspin_agent::{SteerError, SteerOptions, Steerer};

use super::{
    costs, dry, ecs_fairness, ecs_latency, helping,
    host::{Busy, Cgroup, pin, set_online, shares, state},
    hostile,
    observer_vms::run_from,
    stress, vms, watchdog, weights,
};

/// A check and its name.
type Check = (&'static str, fn());

/// Instructions that the verifier may walk for all programs of the scheduler.
const WALKED_MAX: u32 = 90_000;

/// How long VMs run that are killed in the end: longer than any check (200 attaches take 17 minutes of emulated time).
const CHILD_MS: u64 = 3_600_000;

/// Those of `make test`, in the order in which they run.
pub const ALL: [Check; 8] = [
    ("it_comes_and_goes", it_comes_and_goes),
    (
        "cpu_time_follows_weights",
        weights::cpu_time_follows_weights,
    ),
    ("quotas_are_named", quotas_are_named),
    ("a_loan_drains_the_convoy", vms::a_loan_drains_the_convoy),
    (
        "policies_are_switched_while_vms_run",
        vms::policies_are_switched_while_vms_run,
    ),
    ("a_policy_costs_little", costs::a_policy_costs_little),
    (
        "it_goes_when_the_kernel_says_so",
        hostile::it_goes_when_the_kernel_says_so,
    ),
    (
        "killed_it_leaves_the_host_as_it_was",
        killed_it_leaves_the_host_as_it_was,
    ),
];

/// Those that `make test` has no time for: of the long form.
pub const LONG: [Check; 17] = [
    ("cpus_come_and_go", cpus_come_and_go),
    (
        "a_dry_run_asks_about_chosen_processes_only",
        dry::a_dry_run_asks_about_chosen_processes_only,
    ),
    (
        "vms_are_killed_in_the_middle_of_loans",
        hostile::vms_are_killed_in_the_middle_of_loans,
    ),
    (
        "places_and_sleepers_count",
        weights::places_and_sleepers_count,
    ),
    (
        "the_lightest_do_not_wait_for_ever",
        weights::the_lightest_do_not_wait_for_ever,
    ),
    ("yielding_buys_no_share", vms::yielding_buys_no_share),
    (
        "the_watchdog_sends_it_away",
        watchdog::the_watchdog_sends_it_away,
    ),
    (
        "help_drains_what_kvm_cannot",
        helping::help_drains_what_kvm_cannot,
    ),
    (
        "only_chosen_processes_are_steered",
        vms::only_chosen_processes_are_steered,
    ),
    ("a_dry_run_changes_nothing", dry::a_dry_run_changes_nothing),
    (
        "a_dispatch_does_not_grow_with_the_queue",
        costs::a_dispatch_does_not_grow_with_the_queue,
    ),
    (
        "a_choice_costs_what_it_did",
        costs::a_choice_costs_what_it_did,
    ),
    (
        "every_policy_costs_little",
        costs::every_policy_costs_little,
    ),
    (
        "attached_and_detached_under_load",
        hostile::attached_and_detached_under_load,
    ),
    (
        "decisions_replay_to_the_bit",
        vms::decisions_replay_to_the_bit,
    ),
    (
        "a_dry_run_decides_as_the_scheduler_would",
        dry::a_dry_run_decides_as_the_scheduler_would,
    ),
    ("stressed_for_seconds", stress::stressed_for_seconds),
];

/// What this binary does when it is started with a word of its own.
pub fn child() {
    match std::env::args().nth(1).as_deref() {
        Some("busy") => {
            let others = std::env::args()
                .nth(2)
                .map_or(1, |word| word.parse().expect("a number"));
            for _ in 1..others {
                let small = std::thread::Builder::new().stack_size(16 << 10);
                small.spawn(spin).expect("a thread");
            }
            spin()
        }
        Some("vm") => {
            let word = |at: usize| std::env::args().nth(at);
            let seed = word(3).map_or(7, |word| word.parse().expect("a number"));
            let vm = match word(2).as_deref() {
                Some("peaceful") => vms::peaceful(4),
                Some("reading") => ecs_fairness::reading(true),
                Some("reading-silently") => ecs_fairness::reading(false),
                Some("waking") => ecs_latency::waking(),
                Some("critical") => ecs_fairness::always_critical(),
                _ => vms::fighting(4),
            };
            run_from(seed, CHILD_MS, vec![vm]);
        }
        Some("steer") => {
            let _steerer = attach();
            println!("attached");
            loop {
                std::thread::park();
            }
        }
        _ => {}
    }
}

fn spin() {
    loop {
        black_box(0);
    }
}

pub fn attach() -> Steerer {
    match Steerer::attach(&SteerOptions::default()) {
        Ok(steerer) => steerer,
        Err(error) => panic!("{error}"),
    }
}

/// The value of a counter.
pub fn counter(steerer: &Steerer, name: &str) -> u64 {
    let counters = steerer.counters().expect("the kernel tells");
    let found = counters.iter().find(|counter| counter.name == name);
    found.expect("a counter of that name").value
}

/// Nothing ended the scheduler, and it did the scheduling.
#[track_caller]
pub fn still_there(steerer: &Steerer) {
    assert_eq!(steerer.ended().expect("the kernel tells"), None);
    assert_eq!(state(), "enabled");
    assert!(counter(steerer, "switches") > 0);
}

/// Shares are within 2 % of what they should be.
#[track_caller]
pub fn are_close(measured: &[f64], weights: &[f64]) {
    let (sum, weight) = (measured.iter().sum::<f64>(), weights.iter().sum::<f64>());
    for (time, wanted) in measured.iter().zip(weights) {
        let (share, wanted) = (time / sum, wanted / weight);
        assert!(
            (share / wanted - 1.0).abs() < 0.02,
            "{measured:?} for weights {weights:?}: a share is {share:.4} instead of {wanted:.4}"
        );
    }
    println!("  {measured:.3?} for {weights:?}");
}

fn it_comes_and_goes() {
    assert_eq!(state(), "disabled");
    let steerer = attach();
    what_the_verifier_walked();
    std::thread::sleep(Duration::from_millis(100));
    still_there(&steerer);
    let error = Steerer::attach(&SteerOptions::default())
        .err()
        .expect("one is enough");
    assert!(
        matches!(&error, SteerError::OtherScheduler { name, .. } if name.starts_with("unspin")),
        "{error}"
    );
    still_there(&steerer);
    drop(steerer);
    assert_eq!(state(), "disabled");
}

/// Attaching takes as long as the verifier does: 10 s of emulated time at 305,000 instructions.
fn what_the_verifier_walked() {
    let walked: Vec<(u32, String)> = libbpf_rs::query::ProgInfoIter::default()
        .map(|program| {
            (
                program.verified_insns,
                program.name.to_string_lossy().into_owned(),
            )
        })
        .collect();
    let sum: u32 = walked.iter().map(|(instructions, _)| instructions).sum();
    println!(
        "  the verifier walked {sum} instructions, most of them in {:?}",
        walked.iter().max()
    );
    assert!(sum < WALKED_MAX, "{walked:?}");
}

fn quotas_are_named() {
    let limited = Cgroup::new("limited", 100);
    let quota = limited.folder().join("cpu.max");
    fs::write(&quota, "50000 100000").expect("a quota");
    let error = Steerer::attach(&SteerOptions::default())
        .err()
        .expect("refused");
    assert!(
        error.to_string().contains("/sys/fs/cgroup/limited"),
        "{error}"
    );
    assert_eq!(state(), "disabled");
    fs::write(&quota, "max 100000").expect("no quota");
    let steerer = attach();
    fs::write(&quota, "50000 100000").expect("a quota");
    std::thread::sleep(Duration::from_millis(200));
    let end = steerer.ended().expect("the kernel tells").expect("it went");
    assert!(end.message.contains("cpu.max"), "{end:?}");
    assert_eq!(state(), "disabled");
}

fn cpus_come_and_go() {
    let steerer = attach();
    let tasks: Vec<Busy> = (0..4).map(|_| Busy::start(0, None)).collect();
    pin(tasks[3].id(), &[1]);
    for _ in 0..3 {
        set_online(1, false);
        std::thread::sleep(Duration::from_millis(100));
        set_online(1, true);
        std::thread::sleep(Duration::from_millis(100));
    }
    still_there(&steerer);
    let all: Vec<&Busy> = tasks.iter().collect();
    let measured = shares(&all, Duration::from_secs(1));
    assert!(measured.iter().all(|time| *time > 0.2), "{measured:?}");
}

fn killed_it_leaves_the_host_as_it_was() {
    let own = std::env::current_exe().expect("procfs is mounted");
    let mut steerer = Command::new(own)
        .arg("steer")
        .spawn()
        .expect("this very binary");
    let busy = Busy::start(0, None);
    wait_for("enabled", Duration::from_secs(20));
    std::thread::sleep(Duration::from_millis(200));
    steerer.kill().expect("it is ours");
    let killed = Instant::now();
    wait_for("disabled", Duration::from_secs(1));
    println!("  {} ms after the kill", killed.elapsed().as_millis());
    steerer.wait().expect("it was killed");
    let measured = shares(&[&busy], Duration::from_millis(300));
    assert!(measured[0] > 0.25, "{measured:?}");
}

pub fn wait_for(wanted: &str, limit: Duration) {
    let began = Instant::now();
    while state() != wanted {
        assert!(began.elapsed() < limit, "after {limit:?} it is {}", state());
        std::thread::sleep(Duration::from_millis(5));
    }
}
