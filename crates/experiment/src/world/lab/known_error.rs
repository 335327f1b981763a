// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the lab was off in measured cells like the one that it predicts now.
//!
//! A row of `lab compare` is a ratio to stock, and so is this: (predicted policy / predicted stock) by (measured policy / measured
//! stock), over all cells that are like it. The cells and their predictions are benchmarks/lab-conformance, the rows of
//! `unspin lab conform`; a test predicts some of them again.

use std::{collections::BTreeSet, sync::LazyLock};

use serde::Deserialize;
use unspin_scenario::{LabVendor, Scenario};

/// The rows.
const ROWS: &str = include_str!("../../../../../benchmarks/lab-conformance/rows.jsonl");
/// `ple_gap`'s and `ple_window`'s defaults of kvm_amd (Linux 7.2, arch/x86/kvm/svm/svm.c: `pause_filter_count`).
const AMD_WINDOW: u64 = 3_000;
/// A host with so many times the pCPUs of a measured one, or its window, is still like it: two doublings. Ours.
const LIKE_FACTOR: f64 = 4.0;

static CELLS: LazyLock<Vec<KnownCell>> = LazyLock::new(|| cells(ROWS));

/// A cell that was measured, and what the lab predicted of it.
#[derive(Clone, Debug, Deserialize)]
struct KnownCell {
    group: String,
    lock: String,
    policy: String,
    vms: u32,
    vcpus: u32,
    pcpus: u32,
    pv_page: bool,
    ple_window: u64,
    measured_per_second: f64,
    predicted_per_second: f64,
}

/// How far it was off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownError {
    /// Cells like this one.
    pub cells: usize,
    /// Median of predicted by measured, either way: 1 and more.
    pub median_factor: f64,
    /// The largest.
    pub largest_factor: f64,
}

/// Of that policy (the words of `lab compare --policy`) in a scenario on so many pCPUs.
///
/// # Errors
/// In words what no measured cell has.
pub fn known_error(stock: &Scenario, pcpus: u32, policy: &str) -> Result<KnownError, String> {
    of_cells(&CELLS, stock, pcpus, policy)
}

fn cells(rows: &str) -> Vec<KnownCell> {
    let rows = rows.lines();
    let cells =
        rows.filter(|row| row.contains(r#""table": "cell""#) || row.contains(r#""table":"cell""#));
    cells
        .map(|row| serde_json::from_str(row).expect("a row of `lab conform`"))
        .collect()
}

fn of_cells(
    cells: &[KnownCell],
    stock: &Scenario,
    pcpus: u32,
    policy: &str,
) -> Result<KnownError, String> {
    let mut like: Vec<&KnownCell> = cells.iter().collect();
    for (what, is_like) in alike(stock, pcpus, policy) {
        like.retain(|cell| is_like(cell));
        if like.is_empty() {
            return Err(what);
        }
    }
    let mut factors: Vec<f64> = like
        .into_iter()
        .filter_map(|cell| factor(cells, cell))
        .collect();
    factors.sort_by(f64::total_cmp);
    let &largest_factor = factors.last().ok_or("stock was not measured beside it")?;
    let (below, above) = ((factors.len() - 1) / 2, factors.len() / 2);
    Ok(KnownError {
        cells: factors.len(),
        median_factor: (factors[below] + factors[above]) / 2.0,
        largest_factor,
    })
}

/// What makes a cell like a prediction, and what is said where none is, in the order in which they are asked.
type Likeness<'a> = (String, Box<dyn Fn(&KnownCell) -> bool + 'a>);

fn alike<'a>(stock: &'a Scenario, pcpus: u32, policy: &'a str) -> Vec<Likeness<'a>> {
    let lab = stock.lab.clone().unwrap_or_default();
    let vms = &stock.vms;
    let vcpus: u32 = vms.iter().map(|vm| vm.count * vm.vcpus).sum();
    let is_overcommitted = vcpus > pcpus;
    let is_plain = vms.len() == 1
        && lab.vendor == LabVendor::Amd
        && vms[0].shootdown_every_iterations + vms[0].wakeup_every_iterations == 0
        && vms[0].load_changes_every_ms == 0;
    let window = stock.host.ple_window.map_or(AMD_WINDOW, u64::from);
    let near = |one: f64, other: f64| (1.0 / LIKE_FACTOR..=LIKE_FACTOR).contains(&(one / other));
    let names: BTreeSet<&str> = policy.split(',').collect();
    let first = &vms[0];
    vec![
        (
            format!("not measured: {policy}"),
            Box::new(move |cell| cell.policy.split(',').collect::<BTreeSet<_>>() == names),
        ),
        (
            format!("not measured: the lock {}", first.lock.name()),
            Box::new(move |cell| cell.lock == first.lock.name()),
        ),
        (
            "measured on AMD, with VMs that are all alike and send no interrupts".to_owned(),
            Box::new(move |_| is_plain),
        ),
        (
            match first.pv_page {
                true => "measured without pv pages only",
                false => "measured with pv pages only",
            }
            .to_owned(),
            Box::new(move |cell| cell.pv_page == first.pv_page),
        ),
        (
            match is_overcommitted {
                true => "measured without overcommit only",
                false => "measured with overcommit only",
            }
            .to_owned(),
            Box::new(move |cell| (cell.vms * cell.vcpus > cell.pcpus) == is_overcommitted),
        ),
        (
            format!("not measured: windows near {window}"),
            Box::new(move |cell| near(cell.ple_window as f64, window as f64)),
        ),
        (
            format!("not measured: {pcpus} pCPUs"),
            Box::new(move |cell| near(f64::from(cell.pcpus), f64::from(pcpus))),
        ),
    ]
}

/// How far the ratio to stock was off in this cell, either way; none where stock was not measured beside it.
fn factor(cells: &[KnownCell], cell: &KnownCell) -> Option<f64> {
    let mut beside = cells.iter().filter(|other| other.group == cell.group);
    let stock = beside.find(|other| other.lock == cell.lock && other.policy == "stock")?;
    let predicted = cell.predicted_per_second / stock.predicted_per_second;
    let measured = cell.measured_per_second / stock.measured_per_second;
    let off = predicted / measured;
    Some(off.max(1.0 / off))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Session, conform};

    fn cell(policy: &str, measured: f64, predicted: f64) -> KnownCell {
        KnownCell {
            group: "1x4".into(),
            lock: "ticket".into(),
            policy: policy.into(),
            vms: 1,
            vcpus: 4,
            pcpus: 2,
            pv_page: true,
            ple_window: 200,
            measured_per_second: measured,
            predicted_per_second: predicted,
        }
    }

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "duration = \"10ms\"\n[host]\ncpus = 2\nple_window = 200\n[[vm]]\nvcpus = 4\nlock = \"ticket\"\nhold = \"1us\"\n\
             pv_page = true\n{more}"
        );
        Scenario::parse(&text, "s.toml").expect("a scenario")
    }

    /// Twice as high as measured, and three quarters of it: what counts is the ratio to stock, either way.
    #[test]
    fn the_error_is_of_ratios_to_stock_either_way() {
        let mut cells = vec![
            cell("stock", 100.0, 50.0),
            cell("loan,kernel-exit", 200.0, 200.0),
        ];
        let other = |policy: &str, measured, predicted| KnownCell {
            group: "1x6".into(),
            vcpus: 6,
            ..cell(policy, measured, predicted)
        };
        cells.push(other("stock", 100.0, 100.0));
        cells.push(other("kernel-exit,loan", 400.0, 300.0));
        let error = of_cells(&cells, &scenario(""), 2, "kernel-exit,loan").expect("alike");
        assert_eq!(error.cells, 2);
        assert!((error.largest_factor - 2.0).abs() < 1e-9, "{error:?}");
        let middle = (2.0 + 4.0 / 3.0) / 2.0;
        assert!((error.median_factor - middle).abs() < 1e-9, "{error:?}");
    }

    #[test]
    fn what_no_cell_is_like_is_said() {
        let cells = [cell("stock", 1.0, 1.0), cell("loan", 1.0, 1.0)];
        let said = |scenario: &Scenario, pcpus, policy| {
            of_cells(&cells, scenario, pcpus, policy).unwrap_err()
        };
        let plain = scenario("");
        assert!(of_cells(&cells, &plain, 2, "loan").is_ok());
        assert!(of_cells(&cells, &plain, 3, "loan").is_ok());
        assert_eq!(said(&plain, 2, "gang"), "not measured: gang");
        assert_eq!(said(&plain, 80, "loan"), "measured with overcommit only");
        let large = scenario("count = 40\n");
        assert_eq!(said(&large, 80, "loan"), "not measured: 80 pCPUs");
        let mut other = plain.clone();
        other.host.ple_window = None;
        assert_eq!(said(&other, 2, "loan"), "not measured: windows near 3000");
        other.vms[0].pv_page = false;
        assert_eq!(said(&other, 2, "loan"), "measured with pv pages only");
        let calls = scenario("shootdown_every_iterations = 4\n");
        assert!(said(&calls, 2, "loan").contains("no interrupts"));
        let mcs = Scenario {
            vms: vec![unspin_scenario::Vm {
                lock: unspin_abi::LockKind::from_name("test_and_set").expect("a lock"),
                ..plain.vms[0].clone()
            }],
            ..plain.clone()
        };
        assert_eq!(said(&mcs, 2, "loan"), "not measured: the lock test_and_set");
        let without = of_cells(&cells[1..], &plain, 2, "loan");
        assert_eq!(without.unwrap_err(), "stock was not measured beside it");
    }

    /// The rows are of this lab: some of the cells, predicted again, come out the same to the digit.
    #[test]
    fn the_rows_are_what_the_lab_predicts_today() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../scenarios/lab/testbed.conformance.toml"
        );
        let cells = conform::load(std::path::Path::new(file))
            .expect("it reads")
            .cells;
        assert_eq!(
            CELLS.len(),
            cells.len(),
            "`make benchmarks WHAT=lab-conformance` runs it again"
        );
        let some: Vec<_> = cells.into_iter().step_by(9).collect();
        let all = conform::predict(some, 4, None, &Session::quiet()).expect("it runs");
        for (now, known) in all.iter().zip(CELLS.iter().step_by(9)) {
            let name = format!("{}, {}, {}", known.group, known.lock, known.policy);
            let cell = &now.cell;
            assert_eq!(
                name,
                format!("{}, {}, {}", cell.group, cell.lock, cell.policy)
            );
            assert!(
                (now.mean() - known.predicted_per_second).abs() < 1e-6,
                "{name}: {} and {}: `make benchmarks WHAT=lab-conformance` runs it again",
                now.mean(),
                known.predicted_per_second
            );
        }
    }
}
