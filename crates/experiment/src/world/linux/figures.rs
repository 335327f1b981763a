// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a row says of Linux guests beside what rows of all worlds say. The fields are keys of the JSON rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unspin_report::Summary;

use super::{Cell, Sample};
use crate::{
    Row,
    plan::{Column, Plan},
    sample::{Sample as _, Samples},
};

/// Times are means of all runs.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Figures {
    /// What each guest repeats.
    pub load: String,
    /// Paravirtual features of all guests (ruling 35).
    pub features: String,
    /// The command of the load; empty of a cell that was not measured.
    pub command: String,
    /// A run of the ideal: one VM that fits, alone.
    pub ideal_run_ns: Option<f64>,
    /// A run under the host's own scheduler.
    pub stock_run_ns: Option<f64>,
    /// A run under the policy.
    pub policy_run_ns: Option<f64>,
    /// Requests (transactions, allocations, answers) per second of all VMs together under the host's own scheduler; none of a load
    /// that has none.
    pub stock_requests_per_s: Option<f64>,
    /// The same under the policy.
    pub policy_requests_per_s: Option<f64>,
    /// The 99th percentile of the load's latencies in a run of the ideal, mean of all runs; none of a load that has none.
    pub ideal_p99_ns: Option<f64>,
    /// The same under the host's own scheduler.
    pub stock_p99_ns: Option<f64>,
    /// The same under the policy.
    pub policy_p99_ns: Option<f64>,
    /// The longest latency of a run under the host's own scheduler, mean of all runs; none of a load that does not say it.
    pub stock_max_ns: Option<f64>,
    /// The same under the policy.
    pub policy_max_ns: Option<f64>,
    /// Pause-loop exits for one run of one VM under the host's own scheduler; none where nobody watched.
    pub stock_ple_exits_per_run: Option<f64>,
    /// The same under the policy.
    pub policy_ple_exits_per_run: Option<f64>,
    /// Whole runs in each VM that are a sample.
    pub runs: u32,
    /// Why there are no figures; none where there are.
    pub not_measured: Option<String>,
}

/// One sample, as it was measured. The fields are the keys of the JSON rows.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct SampleRow {
    /// What each guest repeats.
    pub load: String,
    /// Paravirtual features of all guests.
    pub features: String,
    /// VMs x vCPUs.
    pub shape: String,
    /// `ideal`, `stock`, `stock again`, `refuse-yields` or the policy.
    pub column: String,
    /// From 0; odd ones were measured in the opposite order.
    pub pair: u64,
    /// Runs per second of all VMs together, by the guests' own clocks.
    pub runs_per_s: f64,
    /// A run, mean of all.
    pub run_ns: f64,
    /// Requests per second of all VMs together; none of a load that has none.
    pub requests_per_s: Option<f64>,
    /// The 99th percentile of the load's latencies, mean of all runs; none of a load that has none.
    pub p99_ns: Option<f64>,
    /// The longest latency of a run, mean of all; none of a load that does not say it.
    pub max_ns: Option<f64>,
    /// Pause-loop exits for one run of one VM; none where nobody watched.
    pub ple_exits_per_run: Option<f64>,
}

impl Figures {
    fn of_cell(cell: &Cell, plan: &Plan<u32>) -> Figures {
        Figures {
            load: cell.load.name().to_owned(),
            features: cell.features.to_string(),
            runs: plan.sample,
            ..Figures::default()
        }
    }

    /// Of that column, or without one.
    pub(super) fn of(
        cell: &Cell,
        plan: &Plan<u32>,
        samples: &Samples<Sample>,
        command: &str,
        column: Option<Column>,
    ) -> Figures {
        let common = Figures {
            command: command.to_owned(),
            ideal_run_ns: run_ns(&samples.of(Column::Ideal)),
            stock_run_ns: run_ns(&samples.of(Column::Stock)),
            stock_requests_per_s: mean(&samples.of(Column::Stock), Sample::requests_per_s),
            ideal_p99_ns: mean(&samples.of(Column::Ideal), Sample::p99_ns),
            stock_p99_ns: mean(&samples.of(Column::Stock), Sample::p99_ns),
            stock_max_ns: mean(&samples.of(Column::Stock), Sample::max_ns),
            stock_ple_exits_per_run: mean(&samples.of(Column::Stock), Sample::ple_exits_per_run),
            ..Figures::of_cell(cell, plan)
        };
        let Some(column) = column else {
            return common;
        };
        let of_policy = samples.of(column);
        // A mean of what did end would flatter it.
        let stood_still = samples.stood_still.contains(&column);
        let figure = |of: fn(&Sample) -> Option<f64>| mean(&of_policy, of).filter(|_| !stood_still);
        Figures {
            policy_run_ns: figure(|sample| Some(sample.run_ns())),
            policy_requests_per_s: figure(Sample::requests_per_s),
            policy_p99_ns: figure(Sample::p99_ns),
            policy_max_ns: figure(Sample::max_ns),
            policy_ple_exits_per_run: mean(&of_policy, Sample::ple_exits_per_run),
            not_measured: stood_still
                .then(|| format!("a load stood still under {}", plan.column_name(column))),
            ..common
        }
    }
}

/// The row of a cell in which something took too long.
pub fn not_measured(cell: &Cell, plan: &Plan<u32>, why: &str) -> Row<Figures> {
    Row {
        shape: cell.shape(),
        pairs: u64::from(plan.pairs),
        world: Figures {
            not_measured: Some(why.to_owned()),
            ..Figures::of_cell(cell, plan)
        },
        ..Row::default()
    }
}

fn run_ns(samples: &[&Sample]) -> Option<f64> {
    mean(samples, |sample| Some(sample.run_ns()))
}

/// Of what all samples have; none where one lacks it.
fn mean(samples: &[&Sample], of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = samples.iter().map(|sample| of(sample)).collect();
    Summary::of(&values?).map(|summary| summary.mean)
}

/// Every sample of every column by its name.
pub fn sample_rows(cell: &Cell, plan: &Plan<u32>, samples: &Samples<Sample>) -> Vec<SampleRow> {
    let taken = samples.taken.iter();
    taken
        .map(|(&(column, pair), sample)| SampleRow {
            load: cell.load.name().to_owned(),
            features: cell.features.to_string(),
            shape: cell.shape(),
            column: plan.column_name(column),
            pair: pair as u64,
            runs_per_s: sample.per_second(),
            run_ns: sample.run_ns(),
            requests_per_s: sample.requests_per_s(),
            p99_ns: sample.p99_ns(),
            max_ns: sample.max_ns(),
            ple_exits_per_run: sample.ple_exits_per_run(),
        })
        .collect()
}
