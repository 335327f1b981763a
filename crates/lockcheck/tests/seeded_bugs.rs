// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checker finds each seeded bug in a copy of the locks (`bugs/*.toml`), and no fault in the unchanged locks with
//! the same programs.

use std::{collections::BTreeMap, time::Instant};

use unspin_abi::LockKind;
use unspin_lockcheck::{
    explore::{Exploration, Fault, Findings},
    script::{Locks, RunStates, Setting},
};
use unspin_lockcheck_bugs::Bug;

fn exploration(bug: &Bug, locks: Locks) -> Exploration<'static> {
    let kind = match LockKind::from_name(bug.lock) {
        Some(kind) => kind.number(),
        None if bug.lock == "rcu" => Setting::RCU,
        None => panic!("{}: no lock {}", bug.name, bug.lock),
    };
    let mut exploration = Exploration::of(Setting {
        locks,
        kind,
        programs: bug.programs,
        store_buffers: true,
        looks: true,
        run_states: RunStates::Any,
    });
    exploration.is_fifo = bug.is_fifo;
    exploration.frees_last = LockKind::from_name(bug.lock).is_some_and(LockKind::frees_last);
    exploration
}

/// The promised fault with its schedule, or why it was not found.
fn find(bug: &Bug) -> Result<(Fault, String, Findings), String> {
    let table = bug
        .calls
        .ok_or("its text is not in the header, or not once")?;
    // SAFETY: made by crates/lockcheck-bugs from script.c and its headers; a constant.
    let locks = unsafe { Locks::from_table(table) };
    let promised = |name: &&str| Fault::from_name(name).unwrap_or_else(|| panic!("fault {name}"));
    let promised: Vec<Fault> = bug.finds.iter().map(promised).collect();
    let mut exploration = exploration(bug, locks);
    exploration.stops_at = &promised;
    let findings = exploration.run();
    let found = promised
        .iter()
        .copied()
        .find(|fault| findings.faults.contains_key(fault));
    match found {
        Some(fault) => Ok((fault, findings.faults[&fault].1.clone(), findings)),
        None => Err(format!("found {:?}, not {:?}", findings.faults, bug.finds)),
    }
}

/// Replaying a printed schedule shows the fault again.
fn replays(bug: &Bug, fault: Fault, schedule: &str) -> bool {
    let Some(table) = bug.calls else { return false };
    // SAFETY: as in find().
    let locks = unsafe { Locks::from_table(table) };
    let lines = exploration(bug, locks).replay(schedule);
    let seen_at_a_step = !matches!(fault, Fault::LeftLocked | Fault::Deadlock | Fault::Hopeless);
    !seen_at_a_step || lines.iter().any(|line| *line == format!("{fault:?}"))
}

#[test]
fn every_seeded_bug_is_found() {
    let mut survivors = Vec::new();
    for bug in unspin_lockcheck_bugs::all() {
        let start = Instant::now();
        match find(&bug) {
            Ok((fault, schedule, findings)) => {
                println!(
                    "{}: {}: {fault:?} among {} states in {:.2?}: {schedule}",
                    bug.lock,
                    bug.name,
                    findings.states,
                    start.elapsed()
                );
                assert!(replays(&bug, fault, &schedule), "{}: {schedule}", bug.name);
            }
            Err(why) => survivors.push(format!("{}: {}: {why}", bug.file, bug.name)),
        }
    }
    assert!(survivors.is_empty(), "{survivors:#?}");
}

#[test]
fn the_same_programs_find_nothing_in_the_locks_as_they_are() {
    let mut done = BTreeMap::new();
    // Three and four threads: store_buffers.rs and long_store_buffers.rs.
    let all_lock = |bug: &Bug| bug.programs.iter().all(|program| *program == "L");
    for bug in unspin_lockcheck_bugs::all() {
        if bug.programs.len() > 2 && all_lock(&bug) {
            continue;
        }
        done.entry((bug.lock, bug.programs, bug.is_fifo))
            .or_insert(bug);
    }
    for bug in done.values() {
        let findings = exploration(bug, Locks::as_they_are()).run();
        let faults = findings.faults;
        assert!(
            faults.is_empty(),
            "{} {:?}: {faults:?}",
            bug.lock,
            bug.programs
        );
    }
}

/// There are at least five seeded bugs for each family of locks.
#[test]
fn each_family_has_five() {
    let families: &[&[&str]] = &[
        &["ticket"],
        &["preemptable_ticket"],
        &["paravirtual_ticket", "paravirtual_preemptable_ticket"],
        &["mcs", "clh"],
        &["qspinlock", "paravirtual_qspinlock"],
        &["rwlock"],
        &["mutex"],
        &["adaptive_mutex"],
        &["adaptive_rwlock"],
        &["rwsem"],
        &["rcu"],
    ];
    let bugs = unspin_lockcheck_bugs::all();
    for family in families {
        let count = bugs.iter().filter(|bug| family.contains(&bug.lock)).count();
        assert!(count >= 5, "{family:?}: {count}");
    }
}
