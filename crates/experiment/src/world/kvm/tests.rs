// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of samples that were made up.

use super::*;
use crate::{Verdict, watch::Observe};

pub fn scenario() -> Scenario {
    let text = "duration = \"1s\"\nseed = 5\n[host]\ncpus = 2\n[[vm]]\ncount = 2\nvcpus = 4\nlock = \"ticket\"\n\
                hold = \"1us\"\n";
    Scenario::parse(text, "s.toml").expect("a scenario")
}

pub fn plan(policies: &[&str]) -> Plan {
    Plan {
        pairs: 4,
        sample: Duration::from_millis(500),
        discard: Duration::from_millis(250),
        observe: Observe::Off,
        policies: policies
            .iter()
            .map(|text| text.parse().expect("a policy"))
            .collect(),
        rivals: Vec::new(),
        only_vms: false,
        useful_time: false,
    }
}

/// Each column's total rates by pair, the first VM getting a quarter of it and of the CPU time.
pub fn measured(columns: &[(Column, [f64; 4])]) -> Samples<Sample> {
    let mut measured = Samples::default();
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
                useful_ns_per_s: None,
            };
            measured.taken.insert((*column, pair), sample);
        }
    }
    measured
}

pub const IDEAL: (Column, [f64; 4]) = (Column::Ideal, [1000.0, 1001.0, 999.0, 1000.0]);
pub const STOCK: (Column, [f64; 4]) = (Column::Stock, [200.0, 210.0, 190.0, 200.0]);
pub const AGAIN: (Column, [f64; 4]) = (Column::StockAgain, [201.0, 208.0, 193.0, 199.0]);
pub const NONE: (Column, [f64; 4]) = (Column::RefuseYields, [20.0, 21.0, 19.0, 20.0]);

/// The rows of these samples on 2 CPUs.
pub fn rows_of(policies: &[&str], columns: &[(Column, [f64; 4])]) -> Vec<Row<Figures>> {
    rows_under(&plan(policies), columns)
}

fn rows_under(plan: &Plan, columns: &[(Column, [f64; 4])]) -> Vec<Row<Figures>> {
    let facts = Facts {
        cpus: 2,
        ..Facts::default()
    };
    let compared = rows(&scenario(), plan, &measured(columns), &facts, "again");
    compared.expect("rows").rows
}

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
    let rows = rows_of(&["loan", "kernel-exit"], &columns);
    let [loan, exit] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!((loan.shape.as_str(), loan.overcommit), ("2x4", Some(4.0)));
    assert_eq!(loan.world.stock_per_s, exit.world.stock_per_s);
    assert_eq!(
        (loan.world.refuse_yields_per_s, loan.pairs),
        (Some(20.0), 4)
    );
    assert_eq!(loan.policy.as_deref(), Some("loan"));
    let closed = loan.gap_closed.expect("a gap");
    assert_eq!(closed.value, 0.95);
    assert!(closed.low.expect("four pairs") < 0.95);
    assert_eq!(loan.to_stock.expect("a ratio").verdict, Verdict::Higher);
    assert_eq!(loan.harm.as_deref(), Some("no harm"));
    assert_eq!(exit.to_stock.expect("a ratio").verdict, Verdict::Lower);
    assert_eq!(exit.harm.as_deref(), Some("harm"));
    assert_eq!(exit.gap_closed.expect("a gap").value, -0.125);
    assert_eq!(loan.world.stock_collapsed_share_percent, 100.0);
    assert_eq!(loan.world.steer_collapsed_share_percent, Some(0.0));
    assert_eq!(loan.null.expect("a null").includes(1.0), Some(true));
    assert_eq!(loan.world.stock_spin_share_percent, None);
}

#[test]
fn a_null_that_leaves_1_out_says_so() {
    let off = (Column::StockAgain, [220.0, 231.0, 209.0, 220.0]);
    let rows = rows_of(&[], &[IDEAL, STOCK, off]);
    assert_eq!(rows[0].null.expect("a null").includes(1.0), Some(false));
    assert_eq!((rows.len(), rows[0].policy.as_deref()), (1, None));
    assert_eq!(rows[0].world.steer_per_s, None);
}

#[test]
fn a_policy_that_stalls_a_window_is_never_harmless() {
    let stalled = (Column::Policy(0), [400.0, 0.0, 400.0, 400.0]);
    let dead = (Column::Policy(1), [0.0; 4]);
    let columns = [IDEAL, STOCK, AGAIN, NONE, stalled, dead];
    let rows = rows_of(&["loan", "kernel-exit"], &columns);
    assert_eq!(rows[0].harm.as_deref(), Some("not resolved"));
    assert_eq!(rows[0].unusable_pairs, Some(1));
    let verdict = rows[0].to_stock.expect("a ratio").verdict;
    assert_eq!(verdict.to_string(), "not resolved, 1 pairs unusable");
    assert_eq!(rows[1].harm.as_deref(), Some("harm"));
    let dead = rows[1].to_stock.expect("it is compared");
    assert_eq!((dead.known(), dead.verdict), (None, Verdict::Lower));
}

#[test]
fn without_a_stock_rate_there_is_no_row() {
    let idle = (Column::Stock, [0.0; 4]);
    let measured = measured(&[IDEAL, idle, AGAIN]);
    let rows = rows(
        &scenario(),
        &plan(&[]),
        &measured,
        &Facts::default(),
        "again",
    );
    assert!(rows.is_err());
}

/// The demo and `--full` read rows that another process has written.
#[test]
fn rows_are_read_as_they_are_written() {
    let stalled = (Column::Policy(0), [400.0, 0.0, 400.0, 400.0]);
    let dead = (Column::Policy(1), [0.0; 4]);
    let good = (Column::Policy(2), [960.0, 962.0, 958.0, 960.0]);
    let columns = [IDEAL, STOCK, AGAIN, NONE, stalled, dead, good];
    for row in rows_of(&["loan", "gang", "kernel-exit"], &columns) {
        let written = serde_json::to_value(&row).expect("JSON");
        let read: Row<Figures> = serde_json::from_value(written.clone()).expect("a row");
        assert_eq!(serde_json::to_value(&read).expect("JSON"), written);
        assert_eq!(
            read.to_stock.expect("compared").verdict,
            row.to_stock.expect("compared").verdict
        );
    }
    let one = &rows_of(&["loan"], &columns[..5])[0];
    let written = serde_json::to_value(one).expect("JSON");
    assert_eq!(written["stock_verdict"], "lower");
    assert_eq!(written["null_verdict"], "includes 1");
    assert_eq!(written["verdict"], "not resolved, 1 pairs unusable");
    assert_eq!(written["stock_per_s"], 200.0);
    assert!(written["refuse_yields_ratio_to_stock_low"].is_number());
}

/// Each key is in the schema, with what it says.
#[test]
fn the_schema_has_every_key() {
    let schema = serde_json::to_value(schemars::schema_for!(Row<Figures>)).expect("JSON");
    let row = serde_json::to_value(&rows_of(&[], &[IDEAL, STOCK, AGAIN])[0]).expect("JSON");
    for key in row.as_object().expect("an object").keys() {
        let said = &schema["properties"][key]["description"];
        assert!(said.as_str().is_some_and(|said| !said.is_empty()), "{key}");
    }
}

/// With ratio, gap and harm of its own, after the policies.
#[test]
fn a_rival_stands_beside_the_policies() {
    use crate::rival::Rival::{Lavd, Rusty};
    let plan = Plan {
        rivals: vec![Rusty, Lavd],
        ..plan(&["loan"])
    };
    let loan = (Column::Policy(0), [960.0, 962.0, 958.0, 960.0]);
    let rusty = (Column::Rival(0), [100.0, 105.0, 95.0, 100.0]);
    let lavd = (Column::Rival(1), [400.0, 420.0, 380.0, 400.0]);
    let rows = rows_under(&plan, &[IDEAL, STOCK, AGAIN, NONE, loan, rusty, lavd]);
    let names: Vec<_> = rows.iter().map(|row| row.policy.clone().unwrap()).collect();
    assert_eq!(names, ["loan", "scx_rusty", "scx_lavd"]);
    assert_eq!(rows[1].harm.as_deref(), Some("harm"));
    assert_eq!(rows[1].to_stock.unwrap().verdict, Verdict::Lower);
    let lavd = &rows[2];
    assert!((lavd.to_stock.unwrap().value - 2.0).abs() < 1e-9);
    assert!((lavd.gap_closed.unwrap().value - 0.25).abs() < 0.01);
    assert_eq!(lavd.world.steer_per_s, Some(400.0));
    // Without a policy our scheduler is not asked for.
    let plan = Plan {
        policies: Vec::new(),
        ..plan
    };
    let rows = rows_under(&plan, &[IDEAL, STOCK, AGAIN, rusty]);
    assert!(rows[0].refuse_yields.is_none() && !plan.columns().steer);
    let vms = details::vm_rows(&scenario(), &plan, &measured(&[STOCK, rusty]));
    let columns: Vec<_> = vms.iter().map(|row| row.column.as_str()).collect();
    assert_eq!(columns, ["stock", "stock", "scx_rusty", "scx_rusty"]);
    assert!(
        plan.to_args()
            .join(" ")
            .ends_with("--rival scx_rusty --rival scx_lavd")
    );
}
