// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of `unspin bench host`: what each scheduler makes of a load, beside the kernel's own.

use std::collections::BTreeMap;

use unspin_report::{Summary, row};

use super::{Plan, Sample};
use crate::{
    estimate::{Estimate, ratio},
    plan::Column,
    sample::{Sample as _, Samples},
};

row! {
    "host", ["bench host"];
    /// A load or a command under a scheduler. Latencies are how late a periodic task or a worker woke up, or how long a round trip, a
    /// call, a process or a run of the command took.
    pub struct HostRow {
        /// What runs.
        load: String = ("load", Text),
        /// CPUs.
        cpus: usize = ("CPUs", Count),
        /// `kernel`, `kernel again`, the policies of our scheduler, or a rival.
        scheduler: String = ("scheduler", Text),
        /// Operations of all measured threads per second; mean of the samples.
        operations_per_s: f64 = ("operations/s", Rate),
        /// Geometric mean of its operations beside those of the kernel's scheduler, pair by pair; null: the kernel's own.
        throughput_ratio_to_kernel: Option<f64> = ("/ kernel", Ratio),
        /// Its 95 % interval; null for a single pair.
        throughput_ratio_to_kernel_low: Option<f64> = ("95 % from", Ratio),
        /// Its 95 % interval.
        throughput_ratio_to_kernel_high: Option<f64> = ("to", Ratio),
        /// Median latency of all samples together; ns, null of CPU hogs and messages.
        latency_median_ns: Option<u64> = ("latency, median", Nanoseconds),
        /// The latency that 99 % do not exceed; ns.
        latency_p99_ns: Option<u64> = ("p99", Nanoseconds),
        /// The longest; ns.
        latency_longest_ns: Option<u64> = ("longest", Nanoseconds),
        /// Geometric mean of its median latency beside the kernel's, pair by pair.
        latency_median_ratio_to_kernel: Option<f64> = ("median / kernel", Ratio),
        /// The same of the latency that 99 % do not exceed.
        latency_p99_ratio_to_kernel: Option<f64> = ("p99 / kernel", Ratio),
        /// By how much the share of the thread that is furthest from its due is off, mean of the samples; percent of what is due.
        share_error_percent: Option<f64> = ("share off by %", Percent),
        /// Pairs of samples.
        pairs: usize = ("pairs", Count),
    }
}

row! {
    "host_program", ["bench host"];
    /// A program of our scheduler under a load.
    pub struct HostProgramRow {
        /// What runs.
        load: String = ("load", Text),
        /// The policies of our scheduler.
        scheduler: String = ("scheduler", Text),
        /// The program's place.
        program: String = ("program", Text),
        /// Runs per second.
        runs_per_s: f64 = ("runs/s", Count),
        /// Time of a run; ns, mean.
        run_ns: f64 = ("a run", Nanoseconds),
        /// Its time beside all CPUs' time; percent.
        share_percent: f64 = ("% of the CPUs", Percent),
    }
}

/// A row for each program and column of ours.
pub(super) fn program_rows(
    load: &str,
    cpus: usize,
    plan: &Plan,
    samples: &Samples<Sample>,
) -> Vec<HostProgramRow> {
    let mut sums: BTreeMap<(Column, &str), (u64, u64, f64)> = BTreeMap::new();
    for ((column, _), sample) in &samples.taken {
        for program in &sample.programs {
            let sum = sums.entry((*column, &program.name)).or_default();
            sum.0 += program.run_count;
            sum.1 += program.run_time_ns;
            sum.2 += sample.time.as_secs_f64();
        }
    }
    sums.into_iter()
        .map(
            |((column, name), (runs, spent_ns, seconds))| HostProgramRow {
                load: load.to_owned(),
                scheduler: plan.column_name(column),
                program: name.to_owned(),
                runs_per_s: runs as f64 / seconds,
                run_ns: spent_ns as f64 / runs as f64,
                share_percent: spent_ns as f64 / 1e7 / seconds / cpus as f64,
            },
        )
        .collect()
}

/// That value of each sample of a column, where they have one.
fn each(
    samples: &Samples<Sample>,
    column: Column,
    of: impl Fn(&Sample) -> Option<f64>,
) -> Vec<f64> {
    samples.of(column).into_iter().filter_map(of).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|summary| summary.mean)
}

/// The value that this share of all do not exceed; `None` of none.
pub(super) fn percentile(sorted: &[u64], share: f64) -> Option<u64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// A row for each column.
pub(super) fn rows(
    load: &str,
    cpus: usize,
    plan: &Plan,
    samples: &Samples<Sample>,
) -> Vec<HostRow> {
    let mut columns = vec![Column::Stock, Column::StockAgain, Column::RefuseYields];
    columns.extend(plan.judged().into_iter().map(|(column, _)| column));
    columns
        .into_iter()
        .map(|column| row(load, cpus, plan, samples, column))
        .collect()
}

fn row(load: &str, cpus: usize, plan: &Plan, samples: &Samples<Sample>, column: Column) -> HostRow {
    let beside_kernel = |of: &dyn Fn(&Sample) -> Option<f64>| {
        let (ours, kernel) = (each(samples, column, of), each(samples, Column::Stock, of));
        (column != Column::Stock)
            .then(|| ratio(&ours, &kernel))
            .flatten()
    };
    let throughput = beside_kernel(&|sample| Some(sample.per_second()));
    let throughput = throughput.as_ref().map(Estimate::of_ratio);
    let taken = samples.of(column);
    let mut latencies: Vec<u64> = taken
        .iter()
        .flat_map(|sample| sample.done.latencies_ns.iter().copied())
        .collect();
    latencies.sort_unstable();
    HostRow {
        load: load.to_owned(),
        cpus,
        scheduler: match column {
            Column::Stock => "kernel".to_owned(),
            Column::StockAgain => "kernel again".to_owned(),
            other => plan.column_name(other),
        },
        operations_per_s: mean(&samples.rates(column)).unwrap_or_default(),
        throughput_ratio_to_kernel: throughput.and_then(|of| of.known()),
        throughput_ratio_to_kernel_low: throughput.and_then(|of| of.low),
        throughput_ratio_to_kernel_high: throughput.and_then(|of| of.high),
        latency_median_ns: percentile(&latencies, 0.5),
        latency_p99_ns: percentile(&latencies, 0.99),
        latency_longest_ns: latencies.last().copied(),
        latency_median_ratio_to_kernel: beside_kernel(&|sample| sample.latency_ns(0.5))
            .map(|of| of.ratio),
        latency_p99_ratio_to_kernel: beside_kernel(&|sample| sample.latency_ns(0.99))
            .map(|of| of.ratio),
        share_error_percent: mean(&each(samples, column, |sample| {
            sample.done.share_error_percent
        })),
        pairs: taken.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        assert_eq!(percentile(&[], 0.5), None);
        assert_eq!(percentile(&[7], 0.99), Some(7));
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(percentile(&hundred, 0.5), Some(50));
        assert_eq!(percentile(&hundred, 0.99), Some(99));
        assert_eq!(percentile(&hundred, 1.0), Some(100));
    }
}
