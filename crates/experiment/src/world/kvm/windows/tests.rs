// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of windows that were made up.

use super::*;
use crate::{
    plan::Column as Of,
    world::kvm::tests::{AGAIN, IDEAL, STOCK, measured, plan, scenario},
};

/// 1,000 exits of windows that take 100 ns a unit, with 1 us of handling each, in 1 s of CPU time.
fn sample(window: u64, epochs: &[f64]) -> WindowSample {
    WindowSample {
        sums: WindowSums {
            exits: 1_000,
            window_units: window * 1_000,
            mean_units: window * 1_000,
            handling_ns: 1_000_000,
            cpu_ns: 1_000_000_000,
            spun_ns: window * 100,
            spun_units: window,
        },
        epochs: epochs.iter().map(|mean| (0, *mean)).collect(),
    }
}

#[test]
fn a_sample_costs_its_windows_and_their_handling() {
    let sample = sample(3_000, &[]);
    // 1,000 x 3,000 x 100 ns and 1 ms of 1 s.
    assert_eq!(sample.inefficiency_percent(), Some(30.1));
    assert_eq!(sample.mean_window(), Some(3_000.0));
    let silent = WindowSample::default();
    assert_eq!(
        (silent.inefficiency_percent(), silent.mean_window()),
        (None, None)
    );
    let mut grown = sample.sums;
    grown.exits += 5;
    grown.cpu_ns += 7;
    let between = since(&sample.sums, &grown);
    assert_eq!((between.exits, between.cpu_ns), (5, 7));
    assert_eq!(between.spun_units, 3_000);
}

/// No window of 0, and none of the policy before: columns of KVM's own are refused where it is not known.
#[test]
fn a_window_that_is_not_known_is_not_set() {
    let refused = Windows::new(true).start(None).expect_err("not known");
    assert!(matches!(&refused, Error::Usage(says) if says.contains("kvm_amd")));
    assert!(Windows::new(false).start(None).is_ok(), "nobody sets any");
}

#[test]
fn columns_have_rows_where_their_windows_were_set() {
    let windows = (Of::Policy(0), [960.0; 4]);
    let mut measured = measured(&[IDEAL, STOCK, AGAIN, windows]);
    for (pair, mean) in [200.0, 400.0, 600.0, 800.0].into_iter().enumerate() {
        let of = measured
            .taken
            .get_mut(&(Of::Policy(0), pair))
            .expect("it is there");
        // Steady within a sample but for 10 up and 10 down: what samples differ by is not unsteadiness.
        of.windows = Some(sample(mean as u64, &[mean - 10.0, mean, mean + 10.0]));
    }
    let rows = rows(&scenario(), &plan(&["apple"]), &measured);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!(
        (row.column.as_str(), row.operations_per_s),
        ("apple", 960.0)
    );
    assert_eq!((row.samples, row.epochs, row.exits), (4, 12, 4_000));
    assert_eq!(
        (row.window_mean, row.window_deviation),
        (Some(500.0), Some(10.0))
    );
    let inefficiency = row.inefficiency_percent.expect("known");
    assert!((inefficiency - 5.1).abs() < 1e-9, "{inefficiency}");
    assert_eq!(row.unit_ns, Some(100.0));
    let written = serde_json::to_value(row).expect("JSON");
    let read: WindowRow = serde_json::from_value(written).expect("the same fields");
    assert_eq!((read.column, read.epochs), ("apple".to_owned(), 12));
}

#[test]
fn vms_are_not_mixed() {
    let two = WindowSample {
        epochs: vec![(0, 100.0), (3, 900.0), (0, 120.0), (3, 920.0)],
        ..WindowSample::default()
    };
    assert_eq!(two.spread(), (400.0, 2));
    assert_eq!(WindowSample::default().spread(), (0.0, 0));
}
