// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of locks between threads: each lock at each point, and our best against the best baseline.

use unspin_lockbench::{Cell, ThreadsReport, points::Point};
use unspin_report::{Summary, row};

use super::Measured;
use crate::axes::describe_work;

row! {
    "threads", ["bench threads"];
    /// One lock at one point, over its samples. An operation is an acquisition; percentiles are of the times to acquire.
    pub struct CellRow {
        /// The lock; several joined by `+` when the scenario's groups differ.
        lock: String = ("lock", Text),
        /// Threads of all groups.
        threads: u32 = ("threads", Count),
        /// How long the lock is held.
        hold: String = ("hold", Text),
        /// What passes between unlock and lock.
        think: String = ("think", Text),
        /// Threads beside them that use CPU time.
        neighbours: u32 = ("neighbours", Count),
        /// Whether it is somebody else's lock: `yes` or `no`.
        is_baseline: &'static str,
        /// Groups; each has its own locks.
        groups: u32,
        /// CPUs that the threads shared.
        cpus: usize,
        /// Samples.
        samples: usize = ("samples", Count),
        /// Operations per second, mean of the samples.
        operations_per_second: Option<f64> = ("ops/s (mean)", Count),
        /// Lower bound of its 95 % interval, not below 0.
        operations_per_second_low: Option<f64> = ("95 % from", Count),
        /// Upper bound.
        operations_per_second_high: Option<f64> = ("to", Count),
        /// The least sample's.
        operations_per_second_least: Option<f64> = ("least", Count),
        /// The largest sample's.
        operations_per_second_most: Option<f64> = ("most", Count),
        /// Standard deviation of the samples.
        operations_per_second_deviation: Option<f64>,
        /// Median of the samples.
        operations_per_second_median: Option<f64>,
        /// The same lock against itself: the two halves of the samples.
        null_ratio: Option<f64> = ("null", Ratio),
        /// Jain's index over the threads' operations; 1: all alike.
        jain_index: Option<f64> = ("Jain", Ratio),
        /// Time to acquire that 50 of 100 do not exceed; ns.
        acquire_p50_ns: Option<f64> = ("wait p50", Nanoseconds),
        /// 95 of 100; ns.
        acquire_p95_ns: Option<f64> = ("p95", Nanoseconds),
        /// 99 of 100; ns.
        acquire_p99_ns: Option<f64> = ("p99", Nanoseconds),
        /// The longest; ns.
        acquire_longest_ns: Option<f64> = ("longest", Nanoseconds),
        /// CPU time of an operation, work included; ns.
        cpu_per_operation_ns: Option<f64> = ("CPU/op", Nanoseconds),
        /// Waits in the kernel per operation, of our locks alone.
        parks_per_operation: Option<f64>,
        /// Share of the threads' time in waits; percent.
        waiting_share_percent: f64,
        /// The longest wait of any thread; ns.
        longest_wait_ns: f64,
        /// Least divided by most operations of a thread, mean of the samples.
        fairness_ratio: f64,
        /// Mean time inside, unlock included; ns.
        hold_mean_ns: f64,
        /// TSC cycles of a lock-unlock pair by one thread alone, least of the samples.
        uncontended_cycles: Option<f64>,
        /// Time of the preemptable ticket lock's tau (ruling 8) here; ns.
        tau_ns: f64,
        /// PAUSE instructions.
        pauses: u64,
        /// Acquisitions that found the lock taken.
        waits: u64,
        /// Acquisitions (N of VEE'13, Table 1).
        acquisitions: u64,
        /// Waits of more than 2,048 spins (Nh + Nw).
        stalls: u64 = ("stalls", Count),
        /// Of these, those with nobody holding the lock (Nw).
        stalls_unheld: u64 = ("of them unheld", Count),
        /// Nw / (Nh + Nw); percent.
        waiter_share_of_stalls_percent: Option<f64> = ("unheld %", Percent),
    }
}

row! {
    "points", ["bench threads"];
    /// Our best lock against the best baseline that is as fair, at one point: both chosen on one half of the samples, the ratio
    /// taken on the other.
    pub struct PointRow {
        /// Threads of all groups.
        threads: u32 = ("threads", Count),
        /// How long the lock is held.
        hold: String = ("hold", Text),
        /// What passes between unlock and lock.
        think: String = ("think", Text),
        /// Threads beside them that use CPU time.
        neighbours: u32 = ("neighbours", Count),
        /// Whether more than one thread wants the lock often enough: `yes` or `no`.
        contended: &'static str = ("contended", Text),
        /// Our best lock.
        ours: String = ("our best", Text),
        /// Its median operations per second on the half that decides.
        ours_operations_per_second: f64 = ("ops/s", Count),
        /// Its Jain's index there.
        ours_jain_index: f64 = ("Jain", Ratio),
        /// The best baseline whose Jain's index is not lower by more than 0.05.
        baseline: String = ("best baseline as fair", Text),
        /// Its median operations per second on the half that decides.
        baseline_operations_per_second: f64 = ("ops/s", Count),
        /// Its Jain's index there.
        baseline_jain_index: f64 = ("Jain", Ratio),
        /// Ours by the baseline's on the other half.
        ratio: f64 = ("ours/baseline, other half", Ratio),
        /// Ours on the other half by ours on the half that decides.
        null_ratio: f64 = ("ours/ours", Ratio),
    }
}

impl Measured {
    /// A row for each lock at each point.
    pub fn cell_rows(&self) -> impl Iterator<Item = CellRow> {
        let cells = self.report.cells.iter();
        cells.map(|cell| cell_row(cell, &self.report))
    }

    /// A row for each point that has ours and a baseline, worst ratio first.
    pub fn point_rows(&self) -> impl Iterator<Item = PointRow> {
        let points = self.points.iter();
        points.map(|point| point_row(point, &self.report))
    }
}

fn cell_row(cell: &Cell, report: &ThreadsReport) -> CellRow {
    let figures = cell.figures();
    let rates = Summary::of(&cell.operations_per_second());
    let [p50_ns, p95_ns, p99_ns, longest_ns] = figures.acquire_ns;
    CellRow {
        lock: cell.lock.clone(),
        threads: cell.threads,
        hold: describe_work(&cell.hold),
        think: describe_work(&cell.think),
        neighbours: cell.neighbours,
        is_baseline: yes(cell.is_baseline),
        groups: cell.groups,
        cpus: report.cpus,
        samples: cell.samples.len(),
        operations_per_second: rates.map(|rates| rates.mean),
        operations_per_second_low: rates.map(|rates| rates.interval.low.max(0.0)),
        operations_per_second_high: rates.map(|rates| rates.interval.high),
        operations_per_second_least: rates.map(|rates| rates.least),
        operations_per_second_most: rates.map(|rates| rates.largest),
        operations_per_second_deviation: rates.map(|rates| rates.deviation),
        operations_per_second_median: figures.median_rate,
        null_ratio: figures.null_ratio,
        jain_index: figures.jain,
        acquire_p50_ns: p50_ns,
        acquire_p95_ns: p95_ns,
        acquire_p99_ns: p99_ns,
        acquire_longest_ns: longest_ns,
        cpu_per_operation_ns: figures.cpu_ns_per_operation,
        parks_per_operation: figures.parks_per_operation,
        waiting_share_percent: figures.waiting_share_percent,
        longest_wait_ns: figures.longest_wait_us * 1e3,
        fairness_ratio: figures.fairness,
        hold_mean_ns: figures.hold_mean_ns,
        uncontended_cycles: figures.uncontended_cycles,
        tau_ns: report.tau_ns,
        pauses: figures.pauses,
        waits: figures.waits,
        acquisitions: figures.acquisitions,
        stalls: figures.stalls,
        stalls_unheld: figures.stalls_unheld,
        waiter_share_of_stalls_percent: figures.waiter_share_of_stalls_percent,
    }
}

fn point_row(point: &Point, report: &ThreadsReport) -> PointRow {
    let mut cells = report.cells.iter();
    let cell = cells
        .find(|cell| cell.point == point.number)
        .expect("a point is made of cells");
    PointRow {
        threads: point.threads,
        hold: describe_work(&cell.hold),
        think: describe_work(&cell.think),
        neighbours: point.neighbours,
        contended: yes(point.is_contended()),
        ours: point.ours.lock.clone(),
        ours_operations_per_second: point.ours.rate,
        ours_jain_index: point.ours.jain,
        baseline: point.baseline.lock.clone(),
        baseline_operations_per_second: point.baseline.rate,
        baseline_jain_index: point.baseline.jain,
        ratio: point.ratio,
        null_ratio: point.null_ratio,
    }
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
