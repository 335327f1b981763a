// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points from made-up samples.

use unspin_scenario::Shape;

use super::*;
use crate::{latency::Latencies, summary::Sample};

fn work(ns: u64) -> Distribution {
    Distribution {
        unit: WorkUnit::Nanoseconds,
        shape: Shape::Constant(ns),
    }
}

/// A cell of two threads that do those operations in each of four repetitions.
fn cell(lock: &str, is_baseline: bool, operations: [[u64; 2]; 4]) -> Cell {
    let samples = operations
        .into_iter()
        .enumerate()
        .map(|(repetition, each)| {
            let threads = each.map(|operations| {
                let mut statistics = Box::<unspin_abi::unspin_guest_statistics>::default();
                statistics.operations = operations;
                statistics.done_tsc = 1_000;
                statistics
            });
            Sample {
                repetition: repetition as u32,
                window_ns: 1_000,
                fixed_spins: false,
                cycles_per_ns: 1.0,
                uncontended_cycles: None,
                acquire: Latencies::default(),
                cpu_ns: 0,
                parks: 0,
                threads: threads.into(),
            }
        });
    Cell {
        lock: lock.to_owned(),
        is_baseline,
        point: 0,
        hold: work(50),
        think: work(50),
        neighbours: 0,
        threads: 2,
        groups: 1,
        samples: samples.collect(),
    }
}

fn report(cells: Vec<Cell>) -> ThreadsReport {
    ThreadsReport {
        cells,
        cpus: 2,
        tau_spins: 1,
        tau_ns: 1.0,
        loops_per_ns: None,
    }
}

#[test]
fn the_baseline_is_chosen_on_one_half_and_judged_on_the_other() {
    let report = report(vec![
        cell("ours", false, [[50, 50], [50, 50], [40, 40], [40, 40]]),
        // Best where it is chosen, worst where it counts.
        cell("lucky", true, [[90, 90], [90, 90], [20, 20], [20, 20]]),
        cell("steady", true, [[60, 60], [60, 60], [60, 60], [60, 60]]),
    ]);
    let points = points(&report);
    let [point] = &points[..] else {
        panic!("one point: {points:?}")
    };
    assert_eq!(
        (point.ours.lock.as_str(), point.baseline.lock.as_str()),
        ("ours", "lucky")
    );
    assert!((point.ratio - 2.0).abs() < 1e-9, "{}", point.ratio);
    assert!(
        (point.null_ratio - 0.8).abs() < 1e-9,
        "{}",
        point.null_ratio
    );
    assert_eq!(point.held_share, Some(1.0));
    assert!(point.is_contended());
}

#[test]
fn a_baseline_that_is_less_fair_does_not_count() {
    let fair = cell("ours", false, [[50, 50]; 4]);
    let unfair = cell("unfair", true, [[190, 10]; 4]);
    assert_eq!(points(&report(vec![fair.clone(), unfair.clone()])), []);
    let slow = cell("slow", true, [[25, 25]; 4]);
    let points = points(&report(vec![fair, unfair, slow]));
    assert_eq!(points[0].baseline.lock, "slow");
    assert!((points[0].ratio - 2.0).abs() < 1e-9);
}

#[test]
fn worst_points_come_first_and_rare_locks_are_not_contended() {
    let mut cells = vec![
        cell("ours", false, [[50, 50]; 4]),
        cell("baseline", true, [[50, 50]; 4]),
    ];
    let mut rare = cells.clone();
    for cell in &mut rare {
        cell.point = 1;
        cell.think = work(50_000);
    }
    for sample in &mut rare[0].samples {
        for thread in &mut sample.threads {
            thread.operations = 30;
        }
    }
    cells.extend(rare);
    let points = points(&report(cells));
    assert_eq!(
        points.iter().map(|point| point.number).collect::<Vec<_>>(),
        [1, 0]
    );
    assert!((points[0].ratio - 0.6).abs() < 1e-9);
    assert!(!points[0].is_contended() && points[1].is_contended());
}
