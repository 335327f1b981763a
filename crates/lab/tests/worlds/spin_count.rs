// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host writes into the guests' pv pages how many spins to spin: guests follow it, and APPLE adjusts the count by
//! their waits.
#![allow(missing_docs)]

use unspin_lab::{
    LabHost, SpinCount, World,
    costs::Costs,
    ids::{Cpu, Task},
    scheduler::from_name,
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use unspin_policy::{AppleRule, Vendor};
use unspin_scenario::Scenario;

const SECOND: u64 = 1_000_000_000;

struct Nobody;

impl Observer for Nobody {
    fn on_event(&mut self, _: u64, _: Cpu, _: Option<Task>, _: TraceEvent) {}
}

/// Twice as many vCPUs as pCPUs; without pause-loop exits.
fn world(seed: u64, lock: &str, pv_page: bool, spin_count: SpinCount) -> World<Nobody> {
    let text = format!(
        "seed = {seed}\nduration = \"1000s\"\n[[vm]]\nvcpus = 8\nlock = \"{lock}\"\nlocks = 1\npv_page = {pv_page}\n\
        user_work = {{ exponential = \"60us\" }}\nhold = {{ exponential = \"10us\" }}\ntick_hz = 0\npause_exits = false\n"
    );
    let scenario = Scenario::parse(&text, "spins.toml").expect("a scenario");
    let topology = Topology::flat(4).expect("pCPUs");
    let host = LabHost {
        spin_count,
        ..LabHost::new(topology)
    };
    let scheduler = from_name("eevdf-7.2", topology, 1).expect("a name");
    World::new(&scenario, host, Costs::default(), scheduler, Nobody).expect("a world")
}

/// Waits that the guests ended, the mean threshold at them, and spins done, in 200 ms.
fn ended(lock: &str, pv_page: bool, spin_count: SpinCount) -> (u64, u64, u64) {
    let mut world = world(3, lock, pv_page, spin_count);
    world.run_until(SECOND / 5).expect("it runs");
    let statistics: Vec<_> = world.vcpus().map(|(.., statistics)| *statistics).collect();
    let waits: u64 = statistics.iter().map(|one| one.waits_ended).sum();
    let spins: u64 = statistics.iter().map(|one| one.waited_spins).sum();
    let operations = statistics.iter().map(|one| one.operations).sum();
    (waits, spins / waits.max(1), operations)
}

#[test]
fn locks_that_halt_or_call_for_help_spin_as_long_as_they_are_told() {
    for lock in [
        "paravirtual_ticket",
        "paravirtual_preemptable_ticket",
        "paravirtual_qspinlock",
        "helping",
        "helping_named",
    ] {
        let fixed = |spins| ended(lock, true, SpinCount::Fixed(spins));
        let (short, long) = (fixed(64), fixed(1 << 20));
        assert_eq!(short.1, 64, "{lock}: {short:?}");
        // A waiter of the preemptable lock rarely spins for the word itself, and one of Linux's halts at once behind a
        // halted one.
        assert!(short.0 > 2 * long.0, "{lock}: {short:?} {long:?}");
        let untold = ended(lock, false, SpinCount::Fixed(64));
        let own = ended(lock, false, SpinCount::Own);
        assert_eq!(
            untold, own,
            "{lock}: a vCPU without a page is notified of nothing"
        );
        assert_eq!(own.0, 0, "{lock}: nor are its waits counted");
    }
}

/// A lock that neither halts nor calls for help has no threshold; with `help_after_spins` it has one.
#[test]
fn only_waits_that_end_count() {
    assert_eq!(ended("ticket", true, SpinCount::Fixed(64)).0, 0);
}

#[test]
fn apple_moves_the_threshold_within_its_bounds() {
    let rule = AppleRule::with(512, 64, 4_096, 64).expect("in order");
    let mut world = world(3, "helping_named", true, SpinCount::Apple(rule));
    let mut seen = Vec::new();
    for step in 1..=200 {
        world.run_until(step * SECOND / 100).expect("it runs");
        seen.push(world.thresholds().next().expect("one VM"));
    }
    let (_, epochs) = *seen.last().expect("some");
    assert!(epochs >= 12, "{epochs} epochs of 1,000 waits");
    let of: Vec<u32> = seen.iter().map(|(spins, _)| *spins).collect();
    assert!(of.iter().all(|spins| (64..=4_096).contains(spins)));
    assert!(of.contains(&512) && of.contains(&576) && of.contains(&448));
    assert!(of.iter().any(|spins| spins.abs_diff(512) > 64), "{of:?}");
}

/// As `apple` of steer without the module: the paper's numbers, a spin for each of AMD's PAUSEs.
#[test]
fn words() {
    let apple = SpinCount::Apple(AppleRule::new(Vendor::Amd));
    assert_eq!(SpinCount::from_word("apple"), Some(apple));
    assert_eq!(SpinCount::from_word("4096"), Some(SpinCount::Fixed(4_096)));
    let rule = AppleRule::with(512, 64, 4_096, 8).expect("in order");
    let other = SpinCount::from_word("apple=8/64/512/4096");
    assert_eq!(other, Some(SpinCount::Apple(rule)));
    for wrong in ["", "apple=8", "window=9", "0", "-1", "4294967295", "kvm"] {
        assert_eq!(SpinCount::from_word(wrong), None, "{wrong}");
    }
}
