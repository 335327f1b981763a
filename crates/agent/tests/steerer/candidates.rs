// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of candidates: whom of its VM a spinner lets run, whether KVM named anybody or not.

use std::collections::BTreeMap;
use unspin_testbed::check;

use unspin_agent::{SteerError, Steerer};
use unspin_scenario::{Distribution, LockSharing, Shape, Vm, WorkUnit};
use unspin_vmm::RunReport;

use super::{
    host::{counter, still_there},
    observer_vms::{loops, run_for, run_from},
    vms::{fighting, operations, steer},
};

/// As in scenarios/outcomes/lost_opportunity.toml: vCPUs that are preempted in user mode, nearly all the time, and for whose
/// answers to a shootdown others wait in the kernel. KVM passes them over.
fn shooting() -> Vm {
    Vm {
        locks: LockSharing::Private,
        pv_page: false,
        user_work: loops(3_000),
        hold: loops(300),
        shootdown_every_iterations: 50,
        ..fighting(4)
    }
}

/// What the scheduler counted in a run, by name.
fn grown(steerer: &Steerer, names: [&str; 4], report: impl FnOnce() -> RunReport) -> [u64; 4] {
    let before = names.map(|name| counter(steerer, name));
    let done = operations(&report());
    let now = names.map(|name| counter(steerer, name));
    let grown = [0, 1, 2, 3].map(|at| now[at] - before[at]);
    println!("  {names:?}: {grown:?}, {done} operations");
    grown
}

/// Spins between two PAUSEs, and so the window: as many as a guest may have, a good part of a slice.
const WIDE_WINDOW_SPINS: u32 = 65_536;

check!(GUESTS: samples_find_who_spins);
/// A silent VM of four vCPUs whose waiters are hardly ever in a pause-loop exit: loans drain its convoy once samples find them.
fn samples_find_who_spins() {
    let silent = || Vm {
        pv_page: false,
        pause_every_spins: WIDE_WINDOW_SPINS,
        ..fighting(4)
    };
    let policies = "loan-cpl,kernel-exit,spin-samples";
    let steerer = steer(policies, |_| ());
    let names = ["samples", "sampled", "spins", "lent"];
    let [samples, sampled, spins, lent] = grown(&steerer, names, || run_for(600, vec![silent()]));
    assert!(samples > sampled && sampled > 100, "{sampled} of {samples}");
    // Without a rule of candidates no pause-loop exit asks one, and samples ask KVM's present one, unless their vCPU has just lost
    // its CPU.
    assert!((sampled * 9 / 10..=sampled).contains(&spins), "{spins}");
    assert!(lent > 100, "{lent}");
    let with = operations(&run_for(600, vec![silent()]));

    steerer
        .set_policies("loan-cpl,kernel-exit".parse().expect("policies"))
        .expect("at any time");
    let before = counter(&steerer, "samples");
    let without = operations(&run_for(600, vec![silent()]));
    assert_eq!(counter(&steerer, "samples"), before, "nobody is sampled");
    println!("  {without} operations without samples, {with} with");
    assert!(with > 3 * without, "{with} with, {without} without");
    still_there(&steerer);
}

check!(STEERER_LONG: strict_serves_whom_kvm_passes_over);
/// Receivers of a shootdown that KVM passes over are served, and who is not its candidate is not.
pub fn strict_serves_whom_kvm_passes_over() {
    let steerer = steer("strict", |options| options.decision_log_bytes = 16 << 20);
    let names = ["directed", "superseded", "spins", "chosen"];
    let [directed, superseded, spins, chosen] =
        grown(&steerer, names, || run_for(300, vec![shooting()]));
    assert!(spins > 100 && chosen > 20, "{chosen} served of {spins}");
    // Nobody was run at KVM's word, which names one vCPU after another when each is refused.
    assert_eq!(superseded, directed);
    // Receivers preempted in user mode, whom KVM did not ask for in that exit: lost opportunities, served.
    let unnamed = counter(&steerer, "unnamed");
    let from_user = verdicts_replay(&steerer);
    println!("  {unnamed} served whom KVM had not named, {from_user} taken from user mode");
    assert!(
        unnamed > 20 && from_user > 20,
        "{unnamed} unnamed, {from_user} in user mode"
    );
    // By KVM's own rule nobody is taken from there for a spinner in the kernel.
    steerer
        .set_policies("candidates=kvm-5.3".parse().expect("a rule"))
        .expect("the programs are loaded");
    let [_, _, all, _] = grown(&steerer, names, || run_for(300, vec![shooting()]));
    assert!(all > 100, "it spins");
    assert_eq!(verdicts_replay(&steerer), 0);
    still_there(&steerer);
}

/// As in `struct unspin_yield_facts` and `struct unspin_spinner`: `enum unspin_guest_mode` (abi/bpf/events.h).
const USER: u32 = unspin_abi::UNSPIN_MODE_USER;
const KERNEL: u32 = unspin_abi::UNSPIN_MODE_KERNEL;

/// As in `enum unspin_ple_candidate_state` (policy/classify/ple_outcome.h).
const PREEMPTED: u32 = 2;

/// Every verdict is taken again natively, to the bit. How many took a vCPU that was in user mode for a spinner in the kernel.
fn verdicts_replay(steerer: &Steerer) -> u64 {
    let (mut verdicts, mut taken, mut from_user) = (0, 0, 0);
    let drained = steerer.drain_decisions(&mut |record| {
        assert!(record.replays(), "{record:?}");
        if record.event == unspin_policy::steering::UNSPIN_ON_SPIN {
            verdicts += 1;
            let takes = record.verdict & 1 == 1;
            taken += u32::from(takes);
            let apart = record.seen.mode == USER && record.spinner.mode == KERNEL;
            from_user += u64::from(takes && apart);
            let mut other = record;
            other.verdict ^= 1;
            assert!(!other.replays(), "a verdict follows from what was seen");
        }
    });
    drained.expect("the kernel tells");
    assert_eq!(counter(steerer, "unlogged"), 0);
    println!("  {verdicts} verdicts, {taken} taken");
    assert!(verdicts > taken && taken > 0);
    from_user
}

check!(STEERER_LONG: choices_take_effect_at_once);
/// A choice takes effect as a yield that KVM asks for does: in that exit, after which KVM asks for nobody else; and whoever was
/// found when a loan ended, and is not run for that, can be chosen by others at once. Without the one and without the other
/// convoys of silent guests stayed under loan-cpl.
pub fn choices_take_effect_at_once() {
    let policies = "loan-cpl,kernel-exit,candidates=kvm-7.2";
    let steerer = steer(policies, |options| options.decision_log_bytes = 16 << 20);
    let silent = Vm {
        pv_page: false,
        ..fighting(4)
    };
    let names = ["superseded", "spins", "chosen", "unnamed"];
    let [asked, spins, chosen, unnamed] = grown(&steerer, names, || run_for(300, vec![silent]));
    assert!(chosen > 3 * unnamed, "KVM asks for somebody nearly always");
    assert!(asked < spins, "{asked} asked for in {spins} exits");
    let (seen, free) = seen_after_loans(&steerer);
    println!("  {free} of {seen} free to be chosen");
    assert!(seen > 100 && free > seen / 2, "{free} of {seen}");
    still_there(&steerer);
}

check!(STEERER_LONG: the_chosen_ones_last_cpu_looks_again);
/// The CPU where the chosen one ran last looks again, as yield_to() lets it: whoever runs there on a loan that has served its
/// purpose gives it back then. Of bistable convoys one sample says nothing: silent guests at random work, from four seeds.
pub fn the_chosen_ones_last_cpu_looks_again() {
    let random = |mean| Distribution {
        unit: WorkUnit::Loops,
        shape: Shape::Exponential { mean },
    };
    let silent = Vm {
        count: 2,
        pv_page: false,
        user_work: random(3_000),
        hold: random(300),
        ..fighting(4)
    };
    let steerer = steer("loan-cpl,kernel-exit,candidates=strict", |_| ());
    let done: Vec<u64> = (1..=4)
        .map(|seed| operations(&run_from(seed, 300, vec![silent.clone()])))
        .collect();
    println!("  {done:?} operations");
    // 25,743 in all; 13,512 where that CPU is left alone, and no seed of either reaches the other's.
    assert!(done.iter().sum::<u64>() > 19_000, "{done:?}");
    still_there(&steerer);
}

/// Those found when a loan ended whom another spinner saw within 300 us; how many of them as waiting for a CPU, and not as
/// about to run.
fn seen_after_loans(steerer: &Steerer) -> (u32, u32) {
    let (mut seen, mut free, mut found) = (0, 0, BTreeMap::new());
    let drained = steerer.drain_decisions(&mut |record| {
        let ends_loan = record.decision.action == unspin_policy::steering::UNSPIN_GIVE_BACK;
        if record.event == unspin_policy::steering::UNSPIN_ON_YIELD && ends_loan {
            found.insert(record.candidate, record.time_ns);
        }
        if record.event != unspin_policy::steering::UNSPIN_ON_SPIN {
            return;
        }
        let at_ns = found.remove(&record.candidate);
        if at_ns.is_some_and(|at_ns| record.time_ns < at_ns + 300_000) {
            seen += 1;
            free += u32::from(record.seen.state == PREEMPTED);
        }
    });
    drained.expect("the kernel tells");
    assert_eq!(counter(steerer, "unlogged"), 0);
    (seen, free)
}

check!(STEERER_LONG: rules_and_policies_compose);
/// A lock waiter's candidates go through the policies that are on: loans to them end early, and buddies are buddies.
pub fn rules_and_policies_compose() {
    let steerer = steer("loan,usermode", |_| ());
    let names = ["chosen", "lent", "yield_buddies", "superseded"];
    let [chosen, lent, ..] = grown(&steerer, names, || run_for(200, vec![fighting(4)]));
    assert!(
        chosen > 0 && lent == chosen,
        "{lent} of {chosen} were lent to"
    );
    let policies = "debooster-ancestor=0ms,strict".parse().expect("policies");
    steerer.set_policies(policies).expect("at any time");
    let [chosen, lent, yield_buddies, _] =
        grown(&steerer, names, || run_for(200, vec![fighting(4)]));
    assert!(chosen > 0 && yield_buddies == chosen && lent == 0);
    steerer
        .set_policies("loan".parse().expect("a policy"))
        .expect("at any time");
    let [chosen, lent, ..] = grown(&steerer, names, || run_for(100, vec![fighting(4)]));
    assert!(chosen == 0 && lent > 0, "KVM's own candidates again");
    still_there(&steerer);
    drop(steerer);
    // Programs that nobody asked for are not loaded: what would need them is refused.
    let without = steer("loan", |_| ());
    let refused = without.set_policies("loan,strict".parse().expect("policies"));
    assert!(
        matches!(refused, Err(SteerError::NoCandidates)),
        "{refused:?}"
    );
    still_there(&without);
}
