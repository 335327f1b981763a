// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs cost, in instructions, against what they cost when tests/costs.tsv was written.

use std::{fs, time::Duration};
use unspin_testbed::check;

use unspin_agent::{
    EmptyPrograms, EventMask, Health, ObserveOptions, Observer, ProgramCost, Recorder, Watcher,
};
use unspin_scenario::Vm;

use crate::vms::{loops, run_on, vm};

/// The testbed's clock under icount: shift 1.
const INSTRUCTION_NS: f64 = 2.0;
/// A program with fewer runs is not compared: one interrupt in one of them would weigh too much.
const RUNS_MIN: u64 = 100;
/// A figure may grow by a tenth before somebody must look at it.
const ALLOWED: f64 = 1.1;

/// These run with interrupts on, and one that comes in the middle counts as theirs: up to two may, of some 5,000
/// instructions each, here or in the empty program.
const INTERRUPTIBLE: [&str; 5] = [
    "tp_btf/kvm_apic_ipi",
    "kprobe.multi/__apic_accept_irq",
    "kprobe.multi/kvm_vcpu_on_spin",
    "kprobe.multi/yield_to",
    "kretprobe.multi/yield_to",
];
const INTERRUPTS_INSTRUCTIONS: f64 = 10_000.0;

/// One line of the table.
struct Recorded {
    mode: &'static str,
    program: &'static str,
    instructions: f64,
    budget: Option<f64>,
}

fn table() -> Vec<Recorded> {
    let text = include_str!("../../../../tests/costs.tsv");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.map(|line| {
        let columns: Vec<&'static str> = line.split('\t').collect();
        let [mode, program, instructions, budget] = columns[..] else {
            panic!("{line:?}: mode, program, instructions and budget, with tabs between")
        };
        Recorded {
            mode,
            program,
            instructions: instructions.parse().expect("a number"),
            budget: (budget != "-").then(|| budget.parse().expect("a number or -")),
        }
    });
    rows.collect()
}

/// A VM in which everything happens that a program may have to look at.
fn measure(events: EventMask) -> Vec<ProgramCost> {
    let options = ObserveOptions {
        events,
        run_statistics: true,
        ..ObserveOptions::default()
    };
    let observer = Observer::attach(&options).expect("the testbed's kernel has all it takes");
    let empty = EmptyPrograms::attach(&options).expect("so it has for these");
    let recorder = Recorder::start(observer, Duration::from_millis(5), 10_000_000);
    let recorder = recorder.expect("a thread");
    run_busy();
    let recorded = recorder.finish().expect("the ring can be read");
    let health = recorded.observer.health().expect("the kernel tells");
    assert_eq!(health.lost_events, 0, "{health:?}");
    costs(&empty, &health)
}

/// The same of the watcher's.
fn measure_watcher() -> Vec<ProgramCost> {
    let watcher = Watcher::attach_with(true).expect("the testbed's kernel has all it takes");
    let options = ObserveOptions {
        events: EventMask::NONE,
        ..ObserveOptions::default()
    };
    let empty = EmptyPrograms::attach(&options).expect("so it has for these");
    run_busy();
    costs(&empty, &watcher.health().expect("the kernel tells"))
}

fn run_busy() {
    let busy = Vm {
        shootdown_every_iterations: 5,
        wakeup_every_iterations: 7,
        load_changes_every_ms: 0,
        user_work: loops(1_000),
        tick_hz: 500,
        pv_page: true,
        ..vm(4)
    };
    run_on(Some(1), 100, vec![busy]);
}

/// What they took beyond the empty ones, on a clock that must count instructions.
fn costs(empty: &EmptyPrograms, health: &Health) -> Vec<ProgramCost> {
    let took_ns = empty.instruction_ns().expect("the kernel tells");
    let took_ns = took_ns.expect("there were exits");
    assert!(
        (took_ns / INSTRUCTION_NS - 1.0).abs() < 0.03,
        "100 instructions took {took_ns} ns each: this clock does not count instructions"
    );
    empty.costs(health).expect("the kernel tells")
}

check!(INTERRUPTED: costs_are_as_recorded);
/// No program has become dearer by more than a tenth, and every budget is kept.
pub fn costs_are_as_recorded() {
    // Virtual time is the sum of all CPUs' instructions: another CPU's iteration would count as this one's.
    online(1, false);
    let table = table();
    let mut wrong = Vec::new();
    let mut measured = vec![("watch", measure_watcher())];
    for (mode, events) in [
        ("counters", EventMask::NONE),
        (
            "record",
            EventMask::SWITCHES
                .and(EventMask::PAUSE_LOOPS)
                .and(EventMask::IPIS),
        ),
        (
            "pv_page",
            EventMask::SWITCHES
                .and(EventMask::PAUSE_LOOPS)
                .and(EventMask::PV_PAGES),
        ),
    ] {
        measured.push((mode, measure(events)));
    }
    for (mode, costs) in measured {
        for cost in &costs {
            let instructions = cost.own_ns / INSTRUCTION_NS;
            println!(
                "{mode}\t{}\t{instructions:.1}\t{} runs",
                cost.name, cost.runs
            );
            if cost.runs >= RUNS_MIN {
                wrong.extend(compare(&table, mode, cost, instructions));
            }
        }
        for row in table.iter().filter(|row| row.mode == mode) {
            if !costs
                .iter()
                .any(|cost| cost.name == row.program && cost.runs >= RUNS_MIN)
            {
                wrong.push(format!("{mode}: {} hardly ran", row.program));
            }
        }
    }
    online(1, true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with that figure.
fn compare(
    table: &[Recorded],
    mode: &str,
    cost: &ProgramCost,
    instructions: f64,
) -> Option<String> {
    let program = cost.name.as_str();
    let interrupts = if INTERRUPTIBLE.contains(&program) {
        INTERRUPTS_INSTRUCTIONS / cost.runs as f64
    } else {
        0.0
    };
    let row = table
        .iter()
        .find(|row| (row.mode, row.program) == (mode, program));
    let Some(row) = row else {
        return Some(format!("{mode}: {program} is not in tests/costs.tsv"));
    };
    if instructions > row.instructions * ALLOWED + interrupts {
        return Some(format!(
            "{mode}: {program} takes {instructions:.1} instructions, {} when tests/costs.tsv was written",
            row.instructions
        ));
    }
    let budget = row.budget.filter(|budget| instructions > *budget);
    budget.map(|budget| {
        format!("{mode}: {program} takes {instructions:.1} instructions of {budget} allowed")
    })
}

fn online(cpu: u32, on: bool) {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    fs::write(path, if on { "1" } else { "0" }).expect("CONFIG_HOTPLUG_CPU");
}
