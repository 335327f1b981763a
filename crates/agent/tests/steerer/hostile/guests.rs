// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that ask, claim and yield without end. Beside them nobody loses anything: not a share, not a VM, not the scheduler.

use std::{fs, time::Duration};
use unspin_testbed::check;

use unspin_agent::Steerer;
use unspin_policy::GuestAudit;
use unspin_scenario::Scenario;

use crate::steerer::{
    host::{counter, pin, still_there},
    hostile::{
        beside::{Hostile, Measured, VICTIMS, beside},
        code::{Draws, VCPUS},
        kinds::{ADDRESSES, ALL, Kind, LOANS, LONG_ONLY, SHORT},
    },
    observer_vms::run_for,
    vms::{fighting, steer},
};

/// Nobody is further ahead or behind than two slices and a tick, some 15 ms: below 2 % of a victim's part of this.
const MEASURED: Duration = Duration::from_millis(1_800);
/// Long enough to be named.
const SHORT_TIME: Duration = Duration::from_millis(200);
/// Off by so much of their fair share at most.
const TOLERANCE: f64 = 0.02;
/// In the kernel's command line, which no kernel knows.
const SEED: &str = "unspin.seed=";
/// The same of the long form, from each of five seeds.
const LONG: Duration = Duration::from_secs(30);
const LONG_TOLERANCE: f64 = 0.01;
/// 30 ms were seen beside all kinds; a slice that went on while it was lent and given back took 58.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Its first VM sends more interrupts than any other honest one here.
const SHOOTDOWNS: &str = include_str!("../../../../../scenarios/vee21/shootdown-4.toml");

// The kinds one by one, each in a boot of its own and from each seed: together they take hours.
check!(SEEDED: "nobody_loses_beside_hypercalls" => in_the_long_run::<0>);
check!(SEEDED: "nobody_loses_beside_counts" => in_the_long_run::<1>);
check!(SEEDED: "nobody_loses_beside_lends" => in_the_long_run::<2>);
check!(SEEDED: "nobody_loses_beside_critical" => in_the_long_run::<3>);
check!(SEEDED: "nobody_loses_beside_floods" => in_the_long_run::<4>);
check!(SEEDED: "nobody_loses_beside_unmapped" => in_the_long_run::<5>);
check!(SEEDED: "nobody_loses_beside_neighbour" => in_the_long_run::<6>);
check!(SEEDED: "nobody_loses_beside_help" => in_the_long_run::<7>);
check!(SEEDED: "nobody_loses_beside_yields" => in_the_long_run::<8>);
check!(SEEDED: "nobody_loses_beside_critical_granted" => in_the_long_run::<9>);
check!(SEEDED: "nobody_loses_beside_ballooned" => in_the_long_run::<10>);
check!(SEEDED: "nobody_loses_beside_floods_strict" => in_the_long_run::<11>);
check!(SEEDED: "nobody_loses_beside_floods_usermode" => in_the_long_run::<12>);
check!(SEEDED: "nobody_loses_beside_floods_kvm" => in_the_long_run::<13>);
check!(SEEDED: "nobody_loses_beside_everything" => in_the_long_run::<14>);
check!(SEEDED: "nobody_loses_beside_everything_ecs" => in_the_long_run::<15>);
check!(SEEDED: "nobody_loses_beside_critical_on_one_cpu" => nobody_loses_on_one_cpu);

/// How many kinds these are.
const KINDS: usize = 17;

/// The kernel argument that has these guests begin from that seed: QEMU's own seed reaches nothing that they do.
#[allow(dead_code, reason = "in make test-long only")]
pub fn seed_argument(seed: u64) -> String {
    format!("{SEED}{seed}")
}

/// The seed that the machine was booted with, or 1.
fn booted_seed() -> u64 {
    let arguments = fs::read_to_string("/proc/cmdline").expect("procfs is mounted");
    let seed = arguments
        .split_whitespace()
        .find_map(|word| word.strip_prefix(SEED));
    seed.map_or(1, |seed| seed.parse().expect("a number"))
}

check!(GUESTS: nobody_loses_beside_a_hostile_guest);
/// Many policies at once, so that every path of theirs is taken.
fn nobody_loses_beside_a_hostile_guest() {
    let steerer = attached();
    each_kind(&steerer, &SHORT, MEASURED, TOLERANCE);
    // Too short for shares.
    each_kind(&steerer, &ADDRESSES, SHORT_TIME, f64::INFINITY);
    honest_guests_find_all_as_it_was(&steerer);
}

/// Beside one kind for half a minute.
fn in_the_long_run<const AT: usize>() {
    let steerer = attached();
    let all = [&SHORT[..], &ADDRESSES[..], &LONG_ONLY[..]].concat();
    assert_eq!(all.len(), KINDS, "a check for each kind");
    each_kind(&steerer, &all[AT..=AT], LONG, LONG_TOLERANCE);
    honest_guests_find_all_as_it_was(&steerer);
}

/// The last kind and all that is beside it on one CPU: there every yield has a target that waits.
fn nobody_loses_on_one_cpu() {
    // What this thread starts may run where it may.
    pin(0, &[1]);
    in_the_long_run::<16>();
    pin(0, &[0, 1]);
}

fn attached() -> Steerer {
    steer(LOANS, |options| options.candidates = true)
}

fn each_kind(steerer: &Steerer, kinds: &[Kind], time: Duration, tolerance: f64) {
    let mut draws = Draws(booted_seed());
    for kind in kinds {
        let policies = kind.policies.parse().expect("policies");
        steerer.set_policies(policies).expect("at any time");
        let before = did(steerer, kind);
        let mut guest = Hostile::start(kind.name, &mut draws);
        let measured = beside(&guest, time);
        let lost = guest.0.try_wait().expect("it is ours");
        assert!(lost.is_none(), "{}: the VM is lost: {lost:?}", kind.name);
        check(steerer, kind, before, &measured, tolerance);
        is_named(steerer, kind, guest.0.id());
    }
}

/// The others were killed in the middle of it. Nothing is said of honest ones, however many interrupts they send.
fn honest_guests_find_all_as_it_was(steerer: &Steerer) {
    steerer
        .set_policies(ALL.parse().expect("policies"))
        .expect("at any time");
    let report = run_for(100, vec![fighting(2)]);
    let mut vcpus = report.vms[0].vcpus.iter();
    assert!(vcpus.all(|vcpu| vcpu.statistics.operations > 100));
    // Those VMs are this process's.
    let own = std::process::id();
    let before = audit_of(steerer, own);
    let shooting = Scenario::parse(SHOOTDOWNS, "shootdown-4").expect("a scenario");
    run_for(300, vec![shooting.vms[0].clone()]);
    still_there(steerer);
    let after = audit_of(steerer, own);
    println!("  honest guests: {after:?}, before the last {before:?}");
    assert_eq!(after.says(), Vec::<String>::new(), "{after:?}");
    // Nor if it went on for some minutes.
    let sent = after.sent - before.sent;
    assert!(sent > 20, "{sent} interrupts");
    let longer = GuestAudit {
        sent: sent * 1_000,
        unanswered: (after.unanswered - before.unanswered) * 1_000,
        ran_ns: (after.ran_ns - before.ran_ns) * 1_000,
        ..after
    };
    assert_eq!(longer.says(), Vec::<String>::new(), "{longer:?}");
}

fn audit_of(steerer: &Steerer, process: u32) -> GuestAudit {
    let guest_audit = steerer.guest_audit().expect("the kernel tells");
    let found = guest_audit.into_iter().find(|(of, _)| *of == process);
    found.expect("its vCPUs ran").1
}

/// Who lies is named, by the number of its process; where nothing is expected, nothing is said.
fn is_named(steerer: &Steerer, kind: &Kind, process: u32) {
    let of = audit_of(steerer, process);
    let says = of.says().join("; ");
    println!("  {}: named: {says}; {of:?}", kind.name);
    assert!(says.contains(kind.named), "{}: {of:?}", kind.name);
    assert_eq!(
        says.is_empty(),
        kind.named.is_empty(),
        "{}: {of:?}",
        kind.name
    );
}

/// How often its counter counted.
fn did(steerer: &Steerer, kind: &Kind) -> u64 {
    if kind.shows.is_empty() {
        return 0;
    }
    counter(steerer, kind.shows)
}

fn check(steerer: &Steerer, kind: &Kind, before: u64, measured: &Measured, tolerance: f64) {
    let did = did(steerer, kind) - before;
    let (kind, shows, policies) = (kind.name, kind.shows, kind.policies);
    still_there(steerer);
    let all = (measured.victims_ns + measured.guest_ns) as f64;
    let share = measured.victims_ns as f64 / all;
    let fair = VICTIMS as f64 / (VICTIMS + VCPUS) as f64;
    println!(
        "  {kind} ({policies}): {shows} {did}; victims' share {share:.4} of {fair:.4}, waited {} us at most; {} deboosted so far",
        measured.longest_wait.as_micros(),
        counter(steerer, "deboosted")
    );
    assert!(
        did > 100 || shows.is_empty(),
        "{kind}: {shows} only {did} times"
    );
    assert!(share / fair > 1.0 - tolerance, "{kind}: {share} of {fair}");
    // Whose virtual time a debooster raises loses by it, and others gain.
    let may_lose = policies.contains("debooster");
    assert!(
        share / fair < 1.0 + tolerance || may_lose,
        "{kind}: {share} of {fair}"
    );
    assert!(measured.longest_wait < LONGEST_WAIT, "{kind}");
}
