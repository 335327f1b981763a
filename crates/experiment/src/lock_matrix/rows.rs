// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of locks in micro guests: each lock at each point; and the marks of their picture.

use unspin_lockbench::latency::median;
use unspin_report::row;

use super::Cell;
use crate::{
    axes::{describe_point, describe_work},
    plot::Mark,
};

row! {
    "vm", ["bench vm"];
    /// One lock at one point, over its samples; neighbours left out. Waits are of acquisitions that found the lock taken, their
    /// percentiles upper bounds of buckets by powers of two.
    pub struct CellRow {
        /// The lock.
        lock: &'static str = ("lock", Text),
        /// VMs.
        vms: u32 = ("VMs", Count),
        /// vCPUs of each.
        vcpus: u32 = ("vCPUs", Count),
        /// How long the lock is held.
        hold: String = ("hold", Text),
        /// What passes in user mode between unlock and lock.
        think: String = ("think", Text),
        /// VMs of one vCPU beside them.
        neighbours: u32 = ("neighbours", Count),
        /// Samples.
        samples: usize = ("samples", Count),
        /// Operations of all VMs per second, median of the samples.
        operations_per_second: Option<f64> = ("ops/s (median)", Count),
        /// The least sample's.
        operations_per_second_least: Option<f64> = ("least", Count),
        /// The largest sample's.
        operations_per_second_most: Option<f64> = ("most", Count),
        /// By those of the point's first lock.
        ratio: Option<f64> = ("to first lock", Ratio),
        /// The point's first lock, run twice: the second by the first.
        null_ratio: Option<f64> = ("null", Ratio),
        /// Jain's index over the vCPUs' operations; 1: all alike.
        jain_index: Option<f64> = ("Jain", Ratio),
        /// The wait that 50 of 100 do not exceed; ns.
        wait_p50_ns: Option<f64> = ("wait p50", Nanoseconds),
        /// 95 of 100; ns.
        wait_p95_ns: Option<f64> = ("p95", Nanoseconds),
        /// 99 of 100; ns.
        wait_p99_ns: Option<f64> = ("p99", Nanoseconds),
        /// The longest wait of the whole run; ns.
        wait_longest_ns: Option<f64> = ("longest", Nanoseconds),
        /// CPU time of the vCPU threads per operation; ns.
        cpu_per_operation_ns: Option<f64> = ("CPU/op", Nanoseconds),
        /// HLTs of waits for the lock.
        lock_halts: u64 = ("halts", Count),
        /// vCPUs woken, by hypercall or IPI.
        kicks: u64 = ("kicks", Count),
        /// Operations.
        operations: u64,
        /// Acquisitions that found the lock taken.
        lock_waits: u64,
        /// PAUSE instructions.
        pauses: u64,
    }
}

/// A row for each lock at each point.
pub fn rows(cells: &[Cell]) -> impl Iterator<Item = CellRow> {
    own(cells).map(|cell| row_of(cell, cells))
}

/// A mark for each lock at each point, for [`plot::write`](crate::plot::write).
pub fn marks(cells: &[Cell]) -> Vec<Mark<'_>> {
    let marks = own(cells).map(|cell| Mark {
        panel: format!(
            "{} vCPUs, {}",
            cell.vcpus,
            describe_point(&cell.hold, &cell.think, cell.neighbours)
        ),
        is_baseline: false,
        lock: cell.lock.name(),
        x: cell.vms,
        rate: median(&cell.rates()),
    });
    marks.collect()
}

/// Without the second run of the first lock.
fn own(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    cells.iter().filter(|cell| !cell.is_again)
}

fn row_of(cell: &Cell, cells: &[Cell]) -> CellRow {
    let of_point = || cells.iter().filter(|other| other.point == cell.point);
    let rate_of = |found: Option<&Cell>| found.and_then(|cell| median(&cell.rates()));
    let first = rate_of(of_point().next());
    let again = rate_of(of_point().find(|other| other.is_again));
    let by_first = |rate: Option<f64>| {
        let pair = rate.zip(first.filter(|first| *first > 0.0));
        pair.map(|(rate, first)| rate / first)
    };
    let rates = cell.rates();
    let rate = median(&rates);
    CellRow {
        lock: cell.lock.name(),
        vms: cell.vms,
        vcpus: cell.vcpus,
        hold: describe_work(&cell.hold),
        think: describe_work(&cell.think),
        neighbours: cell.neighbours,
        samples: cell.samples.len(),
        operations_per_second: rate,
        operations_per_second_least: rates.iter().copied().reduce(f64::min),
        operations_per_second_most: rates.iter().copied().reduce(f64::max),
        ratio: by_first(rate),
        null_ratio: by_first(again),
        jain_index: cell.jain(),
        wait_p50_ns: cell.wait_ns(500),
        wait_p95_ns: cell.wait_ns(950),
        wait_p99_ns: cell.wait_ns(990),
        wait_longest_ns: cell.longest_ns(),
        cpu_per_operation_ns: cell.cpu_ns_per_operation(),
        lock_halts: cell.sum(|window| window.lock_halts),
        kicks: cell.sum(|window| window.kicks),
        operations: cell.sum(|window| window.operations),
        lock_waits: cell.sum(|window| window.lock_waits),
        pauses: cell.sum(|window| window.pauses),
    }
}
