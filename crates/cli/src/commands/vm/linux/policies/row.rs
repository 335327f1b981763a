// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a comparison of policies with Linux guests says: one row for each policy, by the same statistics as `compare`'s. The
//! fields are the keys of the JSON rows.

use anyhow::anyhow;
use serde::Serialize;
use unspin_agent::PolicyChoice;
use unspin_report::{Column as Shown, Document, GapClosed, Harm, Summary, Table, Unit, Verdict};

use crate::{
    commands::{
        compare::{
            order::Column,
            row::{bounds, null_verdict, ratio, verdict},
            tables::cells,
        },
        vm::linux::policies::{
            args::LinuxPoliciesArguments,
            measure::{Measured, Sample, column_name},
            run::Cell,
        },
    },
    terminal::failure::Failure,
};

const ROW: &[Shown] = &[
    Shown::new("load", "load", Unit::Text),
    Shown::new("features", "features", Unit::Text),
    Shown::new("shape", "VMs x vCPUs", Unit::Text),
    Shown::json_only("overcommit", Unit::Ratio),
    Shown::json_only("command", Unit::Text),
    Shown::new("ideal_run_ns", "ideal run", Unit::Nanoseconds),
    Shown::new("stock_run_ns", "stock run", Unit::Nanoseconds),
    Shown::new("stock_ratio_to_ideal", "stock / ideal", Unit::Ratio),
    Shown::json_only("stock_ratio_to_ideal_low", Unit::Ratio),
    Shown::json_only("stock_ratio_to_ideal_high", Unit::Ratio),
    Shown::new("stock_ratio_to_stock", "stock / stock", Unit::Ratio),
    Shown::json_only("stock_ratio_to_stock_low", Unit::Ratio),
    Shown::json_only("stock_ratio_to_stock_high", Unit::Ratio),
    Shown::new("null_verdict", "null", Unit::Text),
    Shown::new("none_ratio_to_stock", "none / stock", Unit::Ratio),
    Shown::json_only("none_ratio_to_stock_low", Unit::Ratio),
    Shown::json_only("none_ratio_to_stock_high", Unit::Ratio),
    Shown::new("policy", "policy", Unit::Text),
    Shown::new("policy_run_ns", "policy run", Unit::Nanoseconds),
    Shown::new("throughput_ratio_to_stock", "policy / stock", Unit::Ratio),
    Shown::new("throughput_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Shown::new("throughput_ratio_to_stock_high", "to", Unit::Ratio),
    Shown::new("verdict", "is", Unit::Text),
    Shown::new("gap_closed", "gap closed", Unit::Ratio),
    Shown::json_only("gap_closed_low", Unit::Ratio),
    Shown::json_only("gap_closed_high", Unit::Ratio),
    Shown::new("harm", "harm", Unit::Text),
    Shown::new(
        "stock_ple_exits_per_run",
        "PLE exits per run, stock",
        Unit::Count,
    ),
    Shown::new("policy_ple_exits_per_run", "policy", Unit::Count),
    Shown::new("pairs", "pairs", Unit::Count),
    Shown::json_only("runs", Unit::Count),
    Shown::json_only("not_measured", Unit::Text),
];

/// A cell under a policy. Times are means of all runs; ratios are of runs per second of all VMs together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    load: &'static str,
    features: String,
    shape: String,
    overcommit: Option<f64>,
    command: String,
    ideal_run_ns: Option<f64>,
    stock_run_ns: Option<f64>,
    stock_ratio_to_ideal: Option<f64>,
    stock_ratio_to_ideal_low: Option<f64>,
    stock_ratio_to_ideal_high: Option<f64>,
    stock_ratio_to_stock: Option<f64>,
    stock_ratio_to_stock_low: Option<f64>,
    stock_ratio_to_stock_high: Option<f64>,
    null_verdict: Option<String>,
    none_ratio_to_stock: Option<f64>,
    none_ratio_to_stock_low: Option<f64>,
    none_ratio_to_stock_high: Option<f64>,
    policy: Option<String>,
    policy_run_ns: Option<f64>,
    throughput_ratio_to_stock: Option<f64>,
    throughput_ratio_to_stock_low: Option<f64>,
    throughput_ratio_to_stock_high: Option<f64>,
    verdict: Option<String>,
    gap_closed: Option<f64>,
    gap_closed_low: Option<f64>,
    gap_closed_high: Option<f64>,
    harm: Option<&'static str>,
    stock_ple_exits_per_run: Option<f64>,
    policy_ple_exits_per_run: Option<f64>,
    pairs: u32,
    runs: u32,
    not_measured: Option<String>,
}

/// One sample, for programs.
#[derive(Clone, Debug, Serialize)]
pub struct SampleRow {
    load: &'static str,
    features: String,
    shape: String,
    column: String,
    pair: usize,
    runs_per_s: f64,
    run_ns: f64,
    ple_exits_per_run: Option<f64>,
}

const SAMPLE: &[Shown] = &[
    Shown::json_only("load", Unit::Text),
    Shown::json_only("features", Unit::Text),
    Shown::json_only("shape", Unit::Text),
    Shown::json_only("column", Unit::Text),
    Shown::json_only("pair", Unit::Count),
    Shown::json_only("runs_per_s", Unit::Ratio),
    Shown::json_only("run_ns", Unit::Nanoseconds),
    Shown::json_only("ple_exits_per_run", Unit::Count),
];

/// The samples of one column, in order of pairs.
struct Samples<'a>(Vec<&'a Sample>);

impl Samples<'_> {
    fn of(measured: &Measured, column: Column) -> Samples<'_> {
        let samples = measured.samples.iter();
        let of_column = samples.filter(|((of, _), _)| *of == column);
        Samples(of_column.map(|(_, sample)| sample).collect())
    }

    fn rates(&self) -> Vec<f64> {
        self.0.iter().map(|sample| sample.runs_per_s()).collect()
    }

    fn run_ns(&self) -> Option<f64> {
        let times: Vec<f64> = self.0.iter().map(|sample| sample.run_ns()).collect();
        Summary::of(&times).map(|summary| summary.mean)
    }

    fn ple_exits_per_run(&self) -> Option<f64> {
        let exits = self.0.iter().map(|sample| sample.ple_exits_per_run());
        let exits: Option<Vec<f64>> = exits.collect();
        Summary::of(&exits?).map(|summary| summary.mean)
    }
}

impl Row {
    fn of(cell: &Cell, arguments: &LinuxPoliciesArguments) -> Row {
        Row {
            load: cell.load.load().name(),
            features: cell.features.to_string(),
            shape: cell.shape(),
            pairs: arguments.pairs,
            runs: arguments.runs,
            ..Row::default()
        }
    }

    /// A cell in which something took too long.
    pub fn not_measured(cell: &Cell, arguments: &LinuxPoliciesArguments, why: &str) -> Row {
        Row {
            not_measured: Some(why.to_owned()),
            ..Row::of(cell, arguments)
        }
    }
}

/// A row for each policy; one row without any.
///
/// # Errors
/// When no pair of samples can be compared.
pub fn rows(
    cell: &Cell,
    arguments: &LinuxPoliciesArguments,
    measured: &Measured,
) -> Result<Vec<Row>, Failure> {
    let common = common(cell, arguments, measured)
        .ok_or_else(|| anyhow!("no pair of runs of {} can be compared", cell.shape()))?;
    if arguments.policies.is_empty() {
        return Ok(vec![common]);
    }
    let policies = arguments.policies.iter().enumerate();
    Ok(policies
        .map(|(at, policy)| steered(common.clone(), measured, at, policy))
        .collect())
}

/// What all policies share.
fn common(cell: &Cell, arguments: &LinuxPoliciesArguments, measured: &Measured) -> Option<Row> {
    let [ideal, stock, again, none] = [
        Column::Ideal,
        Column::Stock,
        Column::StockAgain,
        Column::RefuseYields,
    ]
    .map(|column| Samples::of(measured, column));
    let to_ideal = ratio(&stock.rates(), &ideal.rates())?;
    let null = ratio(&again.rates(), &stock.rates())?;
    let none = ratio(&none.rates(), &stock.rates())
        .filter(|_| !measured.stood_still.contains(&Column::RefuseYields));
    Some(Row {
        overcommit: Some(f64::from(cell.vms * cell.vcpus) / f64::from(measured.cpus)),
        command: measured.command.clone(),
        ideal_run_ns: ideal.run_ns(),
        stock_run_ns: stock.run_ns(),
        stock_ratio_to_ideal: Some(to_ideal.ratio),
        stock_ratio_to_ideal_low: bounds(&to_ideal).0,
        stock_ratio_to_ideal_high: bounds(&to_ideal).1,
        stock_ratio_to_stock: Some(null.ratio),
        stock_ratio_to_stock_low: bounds(&null).0,
        stock_ratio_to_stock_high: bounds(&null).1,
        null_verdict: null_verdict(&null),
        none_ratio_to_stock: none.map(|none| none.ratio),
        none_ratio_to_stock_low: none.and_then(|none| bounds(&none).0),
        none_ratio_to_stock_high: none.and_then(|none| bounds(&none).1),
        stock_ple_exits_per_run: stock.ple_exits_per_run(),
        ..Row::of(cell, arguments)
    })
}

/// The row with what the policy of that index did.
fn steered(common: Row, measured: &Measured, at: usize, policy: &PolicyChoice) -> Row {
    let rates = |column| Samples::of(measured, column).rates();
    let (ideal, stock) = (rates(Column::Ideal), rates(Column::Stock));
    let column = Column::Policy(at);
    let samples = Samples::of(measured, column);
    // A mean of what did end would flatter it.
    let stood_still = measured.stood_still.contains(&column);
    let to_stock = ratio(&samples.rates(), &stock).filter(|_| !stood_still);
    let gap = GapClosed::of(&ideal, &stock, &samples.rates()).filter(|_| !stood_still);
    let interval = gap.and_then(|gap| gap.interval);
    Row {
        policy: Some(policy.names()),
        policy_run_ns: samples.run_ns().filter(|_| !stood_still),
        throughput_ratio_to_stock: to_stock.map(|ratio| ratio.ratio),
        throughput_ratio_to_stock_low: to_stock.and_then(|ratio| bounds(&ratio).0),
        throughput_ratio_to_stock_high: to_stock.and_then(|ratio| bounds(&ratio).1),
        verdict: Some(to_stock.map_or(Verdict::Lower.name().to_owned(), |ratio| verdict(&ratio))),
        gap_closed: gap.map(|gap| gap.share),
        gap_closed_low: interval.map(|interval| interval.low),
        gap_closed_high: interval.map(|interval| interval.high),
        harm: Some(to_stock.map_or(Harm::Harm, |ratio| Harm::of(&ratio, Harm::CELL)))
            .map(|harm| harm.name()),
        policy_ple_exits_per_run: samples.ple_exits_per_run(),
        not_measured: stood_still.then(|| format!("a load stood still under {}", policy.names())),
        ..common
    }
}

/// Every sample of every column by its name.
pub fn sample_rows(
    cell: &Cell,
    arguments: &LinuxPoliciesArguments,
    measured: &Measured,
) -> Vec<SampleRow> {
    let samples = measured.samples.iter();
    samples
        .map(|(&(column, pair), sample)| SampleRow {
            load: cell.load.load().name(),
            features: cell.features.to_string(),
            shape: cell.shape(),
            column: column_name(arguments, column),
            pair,
            runs_per_s: sample.runs_per_s(),
            run_ns: sample.run_ns(),
            ple_exits_per_run: sample.ple_exits_per_run(),
        })
        .collect()
}

/// Adds the tables.
pub fn add(document: &mut Document, rows: &[Row], samples: &[SampleRow]) {
    let mut columns = ROW.to_vec();
    // People see why a cell has no figures where one has none.
    if rows.iter().any(|row| row.not_measured.is_some()) {
        let last = columns.last_mut().expect("there are columns");
        *last = Shown::new("not_measured", "not measured", Unit::Text);
    }
    let mut table = Table::new("cell", "Linux guests", &columns);
    rows.iter().for_each(|row| table.push(cells(row, &columns)));
    document.table(table);
    let mut table = Table::new("sample", "", SAMPLE);
    samples
        .iter()
        .for_each(|row| table.push(cells(row, SAMPLE)));
    document.table(table);
}

#[cfg(test)]
mod tests;
