// SPDX-License-Identifier: MIT OR Apache-2.0
//! The best of our locks against the best baseline that is as fair, point by point: both are chosen on one half of the
//! repetitions, and the ratio is taken on the other.

use unspin_scenario::{Distribution, WorkUnit};

use crate::summary::{Cell, ThreadsReport};

/// A baseline is as fair as ours when its Jain's index is not lower by more than this.
pub const JAIN_TOLERANCE: f64 = 0.05;
/// A point is contended when the lock would be held for at least this share of the time if nobody waited.
pub const CONTENDED_SHARE: f64 = 0.1;

/// One point: threads, hold, think, neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its number, as in [`Cell::point`].
    pub number: usize,
    /// Threads of all groups.
    pub threads: u32,
    /// Threads that use CPU time beside them.
    pub neighbours: u32,
    /// Share of the time in which the lock would be held if nobody waited, at most 1; `None` where work is counted in
    /// different units and their rate is not known.
    pub held_share: Option<f64>,
    /// Our best.
    pub ours: Side,
    /// The best baseline that is as fair.
    pub baseline: Side,
    /// Ours by the baseline's rate on the other half.
    pub ratio: f64,
    /// Our best against itself: the chosen half's rate by the other's.
    pub null_ratio: f64,
}

/// A lock at a point, on the half that decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Its name.
    pub lock: String,
    /// Median operations per second.
    pub rate: f64,
    /// Jain's index.
    pub jain: f64,
}

impl Point {
    /// More than one thread, and the lock wanted often enough.
    pub fn is_contended(&self) -> bool {
        self.threads > 1 && self.held_share.is_none_or(|share| share >= CONTENDED_SHARE)
    }
}

/// The points that have ours and an equally fair baseline, worst ratio first.
pub fn points(report: &ThreadsReport) -> Vec<Point> {
    let last = report.cells.iter().map(|cell| cell.point).max();
    let mut points: Vec<Point> = last
        .map_or(0..0, |last| 0..last + 1)
        .filter_map(|number| point(report, number))
        .collect();
    points.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    points
}

fn point(report: &ThreadsReport, number: usize) -> Option<Point> {
    let cells = || report.cells.iter().filter(|cell| cell.point == number);
    let ours = cells()
        .filter(|cell| !cell.is_baseline)
        .filter_map(side)
        .max_by(|a, b| a.1.rate.total_cmp(&b.1.rate))?;
    let baseline = cells()
        .filter(|cell| cell.is_baseline)
        .filter_map(side)
        .filter(|(_, side)| side.jain >= ours.1.jain - JAIN_TOLERANCE)
        .max_by(|a, b| a.1.rate.total_cmp(&b.1.rate))?;
    let judged = ours.0.half_rate(1)?;
    Some(Point {
        number,
        threads: ours.0.threads,
        neighbours: ours.0.neighbours,
        held_share: held_share(report, ours.0),
        ratio: judged / baseline.0.half_rate(1)?,
        null_ratio: judged / ours.1.rate,
        ours: ours.1,
        baseline: baseline.1,
    })
}

fn side(cell: &Cell) -> Option<(&Cell, Side)> {
    Some((
        cell,
        Side {
            lock: cell.lock.clone(),
            rate: cell.half_rate(0)?,
            jain: cell.half_jain(0)?,
        },
    ))
}

fn held_share(report: &ThreadsReport, cell: &Cell) -> Option<f64> {
    let same_unit = cell.hold.unit == cell.think.unit;
    let ns = |work: &Distribution| {
        let table = work.quantile_table();
        let mean = table.iter().sum::<u64>() as f64 / table.len() as f64;
        match work.unit {
            WorkUnit::Nanoseconds => Some(mean),
            WorkUnit::Loops if same_unit => Some(mean),
            WorkUnit::Loops => report.loops_per_ns.map(|rate| mean / rate),
        }
    };
    let (hold, think) = (ns(&cell.hold)?, ns(&cell.think)?);
    let running = f64::from(cell.threads).min(report.cpus as f64);
    Some((running * hold / (hold + think).max(f64::MIN_POSITIVE)).min(1.0))
}

#[cfg(test)]
mod tests;
