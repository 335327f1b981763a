// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of the scheduler, whatever the policy. Each check attaches and detaches by itself.

use std::{fs, hint::black_box, time::Duration};
use unspin_testbed::check;

use unspin_agent::{SteerError, SteerOptions, Steerer};

use super::{
    ecs::{fairness, latency},
    host::{Busy, Cgroup, attach, pin, set_online, shares, state, still_there},
    hostile,
    observer_vms::run_from,
    only_vms, tune, vms,
};

/// Instructions that the verifier may walk for all programs of the scheduler.
const WALKED_MAX: u32 = 110_000;

/// How long VMs run that are killed in the end: longer than any check (200 attaches take 17 minutes of emulated time).
const CHILD_MS: u64 = 3_600_000;

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
                Some("single") => vms::peaceful(1),
                Some("crowd") => vms::peaceful(64),
                Some("reading") => fairness::reading(true),
                Some("reading-silently") => fairness::reading(false),
                Some("waking") => latency::waking(),
                Some("critical") => fairness::always_critical(),
                _ => vms::fighting(4),
            };
            run_from(seed, CHILD_MS, vec![vm]);
        }
        Some("steer") => {
            let _steerer = match std::env::args().nth(2).as_deref() {
                Some("only-vms") => only_vms::threads::steer_only_vms("refuse-yields"),
                _ => attach(),
            };
            println!("attached");
            loop {
                std::thread::park();
            }
        }
        Some("stuck") => hostile::stuck::run_programs(),
        Some("tune") => tune::child(),
        _ => {}
    }
}

fn spin() {
    loop {
        black_box(0);
    }
}

check!(STEERER: it_comes_and_goes);
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

check!(STEERER_LONG: quotas_that_lie_too_deep_are_named);
fn quotas_that_lie_too_deep_are_named() {
    let mut groups = vec![Cgroup::new("deep", 100)];
    for depth in 2..=16 {
        let place = format!("deep{}", "/deeper".repeat(depth - 1));
        groups.push(Cgroup::new(&place, 100));
    }
    let deepest = groups.last().expect("there are 16").folder().clone();
    fs::write(deepest.join("cpu.max"), "50000 100000").expect("a quota");
    let error = Steerer::attach(&SteerOptions::default())
        .err()
        .expect("refused");
    assert!(
        error.to_string().contains(&*deepest.to_string_lossy()),
        "{error}"
    );
    assert_eq!(state(), "disabled");
    fs::write(deepest.join("cpu.max"), "max 100000").expect("no quota");
    let steerer = attach();
    // One level less deep it counts.
    let above = deepest.parent().expect("the one above");
    fs::write(above.join("cpu.max"), "50000 100000").expect("a quota");
    std::thread::sleep(Duration::from_millis(200));
    still_there(&steerer);
    fs::write(deepest.join("cpu.max"), "50000 100000").expect("a quota");
    std::thread::sleep(Duration::from_millis(200));
    let end = steerer.ended().expect("the kernel tells").expect("it went");
    assert!(end.message.contains("cpu.max"), "{end:?}");
    assert_eq!(state(), "disabled");
    // From below.
    while groups.pop().is_some() {}
}

check!(STEERER_LONG: cpus_come_and_go);
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
