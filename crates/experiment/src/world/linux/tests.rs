// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of samples that were made up.

use unspin_linux_guest::Counts;

use super::*;
use crate::{Estimate, Sample as _, Verdict, watch::Observe};

const CELL: Cell = Cell {
    load: Load::Hackbench,
    size: (1, 10),
    features: Features::VEE21,
    vms: 2,
    vcpus: 4,
};

fn plan(policies: &[&str]) -> Plan<u32> {
    let policies = policies.iter().map(|text| text.parse().expect("a policy"));
    Plan {
        pairs: 2,
        sample: 2,
        discard: Duration::from_millis(50),
        observe: Observe::Auto,
        policies: policies.collect(),
        rivals: Vec::new(),
        only_vms: false,
        useful_time: false,
    }
}

/// The rows of these samples on 2 CPUs.
fn compared_of(policies: &[&str], samples: &Samples<Sample>) -> Compared {
    compared(&CELL, &plan(policies), samples, 2, "hackbench").expect("rows")
}

fn taking(load_ns: u64) -> Outcome {
    Outcome {
        load_ns,
        ..Outcome::default()
    }
}

/// Each column's time of a run by pair, the same in each of so many VMs.
fn measured(columns: &[(Column, usize, [u64; 2])]) -> Samples<Sample> {
    let mut measured = Samples::default();
    for (column, vms, times) in columns {
        for (pair, &load_ns) in times.iter().enumerate() {
            let counts = Counts::default();
            let sample = Sample {
                runs: vec![
                    vec![Run {
                        outcome: taking(load_ns),
                        counts
                    }];
                    *vms
                ],
                ple_exits_per_s: Some(1_000.0),
            };
            measured.taken.insert((*column, pair), sample);
        }
    }
    measured
}

const IDEAL: (Column, usize, [u64; 2]) = (Column::Ideal, 1, [100_000_000; 2]);
const STOCK: (Column, usize, [u64; 2]) = (Column::Stock, 2, [400_000_000, 400_000_000]);
const AGAIN: (Column, usize, [u64; 2]) = (Column::StockAgain, 2, [400_000_000, 410_000_000]);
const NONE: (Column, usize, [u64; 2]) = (Column::RefuseYields, 2, [800_000_000; 2]);

#[test]
fn two_vms_that_share_the_cpus_without_loss_are_ideal() {
    let fair = (Column::Policy(0), 2, [200_000_000; 2]);
    let measured = measured(&[IDEAL, STOCK, AGAIN, NONE, fair]);
    let rows = compared_of(&["loan-cpl"], &measured).rows;
    let row = &rows[0];
    assert_eq!((row.shape.as_str(), row.overcommit), ("2x4", Some(4.0)));
    let near = |of: Option<Estimate>, value: f64| (of.expect("known").value - value).abs() < 1e-9;
    assert_eq!(row.gap_closed.expect("a gap").value, 1.0);
    assert!(near(row.to_ideal, 0.5) && near(row.to_stock, 2.0) && near(row.refuse_yields, 0.5));
    assert_eq!(row.world.policy_run_ns, Some(200e6));
    assert_eq!(row.world.stock_ple_exits_per_run, Some(200.0));
    assert_eq!(row.to_stock.expect("known").verdict, Verdict::Higher);
    assert_eq!(row.harm.as_deref(), Some("no harm"));
    assert_eq!(row.null.expect("known").includes(1.0), Some(true));
}

#[test]
fn policies_share_what_they_are_compared_with_and_every_sample_is_there() {
    let columns = [
        IDEAL,
        STOCK,
        AGAIN,
        NONE,
        (Column::Policy(0), 2, [300_000_000; 2]),
        (Column::Policy(1), 2, [500_000_000; 2]),
    ];
    let compared = compared_of(&["loan-cpl", "gang"], &measured(&columns));
    let (rows, samples) = (compared.rows, compared.samples);
    assert_eq!(rows[0].world.stock_run_ns, rows[1].world.stock_run_ns);
    assert_eq!(rows[1].to_stock.expect("known").verdict, Verdict::Lower);
    assert_eq!(rows[1].harm.as_deref(), Some("harm"));
    assert_eq!(samples.len(), 6 * 2);
    assert_eq!((samples[11].column.as_str(), samples[11].pair), ("gang", 1));
}

#[test]
fn a_policy_under_which_a_load_stands_still_has_no_figures_and_does_harm() {
    let once = (Column::Policy(0), 2, [200_000_000; 2]);
    let other = (Column::Policy(1), 2, [300_000_000; 2]);
    let mut measured = measured(&[IDEAL, STOCK, AGAIN, once, other]);
    measured.taken.remove(&(Column::Policy(0), 1));
    measured.stood_still = [Column::RefuseYields, Column::Policy(0)].into();
    let rows = compared_of(&["lag-credit", "gang"], &measured).rows;
    assert!(rows[0].world.policy_run_ns.is_none() && rows[0].gap_closed.is_none());
    let nothing = rows[0].to_stock.expect("compared");
    assert_eq!((nothing.known(), nothing.verdict), (None, Verdict::Lower));
    assert_eq!(rows[0].harm.as_deref(), Some("harm"));
    let why = rows[0].world.not_measured.as_deref();
    assert_eq!(why, Some("a load stood still under lag-credit"));
    assert!(rows[0].refuse_yields.is_none());
    assert_eq!(rows[1].harm.as_deref(), Some("no harm"));
    assert_eq!(rows[1].world.not_measured, None);
}

#[test]
fn rates_add_up_over_vms_and_times_are_means_of_runs() {
    let run = |load_ns| Run {
        outcome: Outcome {
            requests: Some(600),
            p99_ns: Some(load_ns / 100),
            ..taking(load_ns)
        },
        counts: Counts::default(),
    };
    let sample = Sample {
        runs: vec![
            vec![run(100_000_000), run(300_000_000)],
            vec![run(500_000_000), run(300_000_000)],
        ],
        ple_exits_per_s: Some(1_500.0),
    };
    assert_eq!(sample.per_second(), 5.0 + 2.5);
    assert_eq!(sample.run_ns(), 300e6);
    assert_eq!(sample.ple_exits_per_run(), Some(200.0));
    assert_eq!(sample.requests_per_s(), Some(3_000.0 + 1_500.0));
    assert_eq!((sample.p99_ns(), sample.max_ns()), (Some(3e6), None));
    assert_eq!(per_second(5, Duration::ZERO), None);
    assert_eq!(per_second(5, Duration::from_millis(500)), Some(10.0));
}

#[test]
fn without_a_policy_our_scheduler_is_not_asked_for() {
    assert!(!plan(&[]).columns().steer);
    let some = plan(&["gang", "loan-cpl,kernel-exit"]).columns();
    assert_eq!((some.policies, some.steer), (2, true));
}

#[test]
fn no_time_gives_no_rate() {
    assert_eq!(per_second(5, Duration::ZERO), None);
    assert_eq!(per_second(5, Duration::from_millis(500)), Some(10.0));
}
