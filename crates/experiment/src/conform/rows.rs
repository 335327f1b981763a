// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of predictions beside what was measured, and of the orders of locks and policies.

use unspin_report::row;

use super::{Predicted, orders};

row! {
    "cell", ["lab conform"];
    /// One cell: what was measured and what the lab predicts; operations per second.
    pub struct CellRow {
        /// The group; its cells are of one scenario.
        group: String = ("", Text),
        /// The lock.
        lock: String = ("lock", Text),
        /// `stock`, `ideal` or the policy.
        policy: String = ("policy", Text),
        /// VMs.
        vms: u32,
        /// vCPUs of each.
        vcpus: u32,
        /// pCPUs of the host.
        pcpus: u32,
        /// Whether guests publish what they hold and wait for.
        pv_page: bool,
        /// KVM's pause-loop window, in PAUSEs (AMD) or cycles (Intel).
        ple_window: Option<u32>,
        /// What was measured.
        measured_per_second: f64 = ("measured ops/s", Count),
        /// The lab's, mean of the seeds.
        predicted_per_second: f64 = ("predicted", Count),
        /// The least seed's.
        predicted_least_per_second: f64 = ("least", Count),
        /// The largest seed's.
        predicted_most_per_second: f64 = ("most", Count),
        /// Predicted by measured.
        ratio: f64 = ("ratio", Ratio),
        /// Whether it is within 1.5, either way: `yes` or `no`.
        hit: &'static str = ("within 1.5", Text),
    }
}

row! {
    "order", ["lab conform"];
    /// How far the lab puts a group's locks, or policies, into the measured order.
    pub struct OrderRow {
        /// The group.
        group: String = ("", Text),
        /// What its cells differ in: `locks` or `policies`.
        of: &'static str = ("of", Text),
        /// Pairs that have an order: of figures of which the larger is at least 1.1 times the smaller.
        pairs: u64 = ("pairs", Count),
        /// Of these, pairs that the lab puts into the same.
        agree: u64 = ("in the same order", Count),
        /// The others, in words.
        others: String = ("not", Text),
    }
}

/// A row for each cell.
pub fn cell_rows(all: &[Predicted]) -> impl Iterator<Item = CellRow> {
    all.iter().map(|one| CellRow {
        group: one.cell.group.clone(),
        lock: one.cell.lock.clone(),
        policy: one.cell.policy.clone(),
        vms: one.cell.scenario.vms[0].count,
        vcpus: one.cell.scenario.vms[0].vcpus,
        pcpus: one.cell.pcpus,
        pv_page: one.cell.scenario.vms[0].pv_page,
        ple_window: one.cell.scenario.host.ple_window,
        measured_per_second: one.cell.per_second,
        predicted_per_second: one.mean(),
        predicted_least_per_second: one.seeds.iter().copied().fold(f64::INFINITY, f64::min),
        predicted_most_per_second: one.seeds.iter().copied().fold(0.0, f64::max),
        ratio: one.ratio(),
        hit: if one.hits() { "yes" } else { "no" },
    })
}

/// A row for each order.
pub fn order_rows(all: &[Predicted]) -> impl Iterator<Item = OrderRow> {
    orders(all).into_iter().map(|order| OrderRow {
        group: order.group,
        of: order.of,
        pairs: order.pairs,
        agree: order.pairs - order.others.len() as u64,
        others: order.others.join("; "),
    })
}
