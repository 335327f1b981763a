// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of samples that were made up.

use super::*;
use crate::commands::{compare::measure::VmSample, vm::args::Observe};

pub fn scenario() -> Scenario {
    let text = "duration = \"1s\"\nseed = 5\n[host]\ncpus = 2\n[[vm]]\ncount = 2\nvcpus = 4\nlock = \"ticket\"\n\
                hold = \"1us\"\n";
    Scenario::parse(text, "s.toml").expect("a scenario")
}

pub fn how(policies: &[&str]) -> How {
    How {
        pairs: 4,
        sample: Duration::from_millis(500),
        discard: Duration::from_millis(250),
        observe: Observe::Off,
        policies: policies
            .iter()
            .map(|text| text.parse().expect("a policy"))
            .collect(),
    }
}

/// Each column's total rates by pair, the first VM getting a quarter of it and of the CPU time.
pub fn measured(columns: &[(Column, [f64; 4])]) -> Measured {
    let mut measured = Measured {
        cpus: 2,
        ..Measured::default()
    };
    for (column, rates) in columns {
        for (pair, rate) in rates.iter().enumerate() {
            let vm = |share: f64| VmSample {
                operations_per_s: rate * share,
                cpu_ns: (1e9 * share) as u64,
            };
            let sample = Sample {
                vms: vec![vm(0.25), vm(0.75)],
                spin_share_percent: f64::NAN,
                windows: None,
            };
            measured.samples.insert((*column, pair), sample);
        }
    }
    measured
}

pub const IDEAL: (Column, [f64; 4]) = (Column::Ideal, [1000.0, 1001.0, 999.0, 1000.0]);
pub const STOCK: (Column, [f64; 4]) = (Column::Stock, [200.0, 210.0, 190.0, 200.0]);
pub const AGAIN: (Column, [f64; 4]) = (Column::StockAgain, [201.0, 208.0, 193.0, 199.0]);
pub const NONE: (Column, [f64; 4]) = (Column::RefuseYields, [20.0, 21.0, 19.0, 20.0]);

#[test]
fn policies_share_what_they_are_compared_with() {
    let columns = [
        IDEAL,
        STOCK,
        AGAIN,
        NONE,
        (Column::Policy(0), [960.0, 962.0, 958.0, 960.0]),
        (Column::Policy(1), [100.0, 105.0, 95.0, 100.0]),
    ];
    let rows = rows(
        &scenario(),
        &how(&["loan", "kernel-exit"]),
        &measured(&columns),
        "again",
    )
    .expect("rows");
    let [loan, exit] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!((loan.shape.as_str(), loan.overcommit), ("2x4", 4.0));
    assert_eq!(loan.stock_per_s, exit.stock_per_s);
    assert_eq!((loan.refuse_yields_per_s, loan.pairs), (Some(20.0), 4));
    assert_eq!(loan.policy.as_deref(), Some("loan"));
    assert_eq!(loan.gap_closed, Some(0.95));
    assert!(loan.gap_closed_low.expect("four pairs") < 0.95);
    assert_eq!(loan.verdict.as_deref(), Some("higher"));
    assert_eq!(loan.harm.as_deref(), Some("no harm"));
    assert_eq!(exit.verdict.as_deref(), Some("lower"));
    assert_eq!(exit.harm.as_deref(), Some("harm"));
    assert_eq!(exit.gap_closed, Some(-0.125));
    assert_eq!(loan.stock_collapsed_share_percent, 100.0);
    assert_eq!(loan.steer_collapsed_share_percent, Some(0.0));
    assert_eq!(loan.null_verdict.as_deref(), Some("includes 1"));
    assert_eq!(loan.stock_spin_share_percent, None);
}

#[test]
fn a_null_that_leaves_1_out_says_so() {
    let off = (Column::StockAgain, [220.0, 231.0, 209.0, 220.0]);
    let rows = rows(
        &scenario(),
        &how(&[]),
        &measured(&[IDEAL, STOCK, off]),
        "again",
    )
    .expect("a row");
    assert_eq!(rows[0].null_verdict.as_deref(), Some("excludes 1"));
    assert_eq!((rows.len(), rows[0].policy.as_deref()), (1, None));
    assert_eq!(rows[0].steer_per_s, None);
}

#[test]
fn a_policy_that_stalls_a_window_is_never_harmless() {
    let stalled = (Column::Policy(0), [400.0, 0.0, 400.0, 400.0]);
    let dead = (Column::Policy(1), [0.0; 4]);
    let columns = [IDEAL, STOCK, AGAIN, NONE, stalled, dead];
    let rows = rows(
        &scenario(),
        &how(&["loan", "kernel-exit"]),
        &measured(&columns),
        "again",
    )
    .expect("rows");
    assert_eq!(rows[0].harm.as_deref(), Some("not resolved"));
    assert_eq!(rows[0].unusable_pairs, 1);
    assert_eq!(
        rows[0].verdict.as_deref(),
        Some("not resolved, 1 pairs unusable")
    );
    assert_eq!(rows[1].harm.as_deref(), Some("harm"));
    assert_eq!(rows[1].throughput_ratio_to_stock, None);
}

#[test]
fn without_a_stock_rate_there_is_no_row() {
    let idle = (Column::Stock, [0.0; 4]);
    let measured = measured(&[IDEAL, idle, AGAIN]);
    assert!(rows(&scenario(), &how(&[]), &measured, "again").is_err());
}
