// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demo's table: a handful of shapes and locks, each ideal, stock and under a remedy, in cells of their own.

use std::time::Duration;

use unspin_report::{GapClosed, Summary, row};
use unspin_scenario::Scenario;
use unspin_testbed::Vendor;

use crate::{
    Error, Plan, Session,
    cells::Cell,
    prediction::{costs, planned, rates},
    row::shape,
    watch::Observe,
};

macro_rules! demo_files {
    ($($name:literal),* $(,)?) => {
        /// The demo's scenarios, as they stand in `scenarios/`, so that the one binary is enough.
        pub const FILES: &[(&str, &str)] = &[$((
            concat!("scenarios/demo/", $name, ".toml"),
            include_str!(concat!("../../../scenarios/demo/", $name, ".toml")),
        )),*];
    };
}
// Longest boots first, so that the last one does not run alone for long.
demo_files!(
    "2x4-ticket",
    "2x4-preemptable_ticket",
    "2x4-test_and_test_and_set",
    "1x4-ticket",
    "1x4-preemptable_ticket",
    "1x4-test_and_test_and_set",
    "1x2-ticket",
    "1x2-test_and_test_and_set",
);

/// The best policy found so far for guests that say what they wait for, as the demo's do.
pub const POLICY: &str = "loan,kernel-exit";
/// Length of a sample: so that all rows take some 200 s on 2 CPUs.
const SAMPLE: Duration = Duration::from_millis(200);
/// What is left out after a change; `unspin compare` has the same default.
const DISCARD: Duration = Duration::from_millis(250);

/// Seeds of each prediction.
pub const SEEDS: u32 = 3;

/// The window of the Intel machine, in TSC cycles: as many spins of the micro guest as the 200 PAUSEs that the
/// files say for AMD's, five instructions each, of which Bochs counts one a cycle.
const INTEL_WINDOW: u32 = 1000;

/// The demo's rows, of so many pairs of samples each; on somebody's host without a policy: another scheduler for all of it is
/// not what a demonstration may bring.
pub fn cells(pairs: u32, on_this_host: bool, vendor: Vendor) -> Vec<Cell> {
    let set = match vendor {
        Vendor::Amd => Vec::new(),
        Vendor::Intel => vec![format!("host.ple_window={INTEL_WINDOW}")],
    };
    let policies = match on_this_host {
        true => Vec::new(),
        false => vec![POLICY.parse().expect("a test parses it")],
    };
    let plan = |text| Plan {
        pairs,
        sample: SAMPLE,
        discard: DISCARD,
        observe: match (on_this_host, fits(text)) {
            (true, _) => Observe::Auto,
            // Nothing is lost there that could be explained.
            (false, true) => Observe::Off,
            (false, false) => Observe::On,
        },
        policies: policies.clone(),
        rivals: Vec::new(),
        only_vms: false,
        useful_time: false,
    };
    FILES
        .iter()
        .map(|(file, text)| Cell {
            file,
            text,
            set: set.clone(),
            vendor,
            plan: plan(text),
        })
        .collect()
}

/// Whether a scenario has no more vCPUs than CPUs; a wrong one is told later.
pub fn fits(text: &str) -> bool {
    Scenario::parse(text, "").is_ok_and(|scenario| {
        let vcpus: u32 = scenario.vms.iter().map(|vm| vm.count * vm.vcpus).sum();
        scenario.host.cpus.is_some_and(|cpus| vcpus <= cpus)
    })
}

row! {
    "prediction", ["demo --predict"];
    /// What the lab predicts of a row of the demo's table; means over the seeds.
    pub struct PredictedRow {
        /// VMs x vCPUs, as in `2x4`.
        shape: String = ("VMs x vCPUs", Text),
        /// The first group's lock.
        lock: String = ("lock", Text),
        /// Acquisitions per second of all VMs together, of the ideal.
        ideal_per_s: Option<f64> = ("ideal ops/s", Count),
        /// Under the host's own scheduler.
        stock_per_s: Option<f64> = ("stock ops/s", Count),
        /// The policy.
        policy: String = ("policy", Text),
        /// With the policy.
        steer_per_s: Option<f64> = ("policy ops/s", Count),
        /// (policy - stock) / (ideal - stock); none where all fits.
        gap_closed: Option<f64> = ("gap closed", Ratio),
    }
}

/// What the lab predicts of the demo's table with the deterministic testbed's costs, in the order of the files' names.
///
/// # Errors
/// An interrupt.
pub fn predict(pairs: u32, session: &Session<'_>) -> Result<Vec<PredictedRow>, Error> {
    let costs = costs(None, true)?;
    let mut rows = Vec::new();
    let mut cells = cells(pairs, false, Vendor::Amd);
    cells.sort_by_key(|cell| cell.file);
    for cell in cells {
        let scenario = cell.scenario()?;
        let ple_window = scenario.host.ple_window.map(u64::from);
        let planned = planned(&scenario, &cell.plan, ple_window, &costs);
        let predicted = rates(&planned, SEEDS, session)?;
        // Ideal, stock, refuse-yields, and the one policy.
        let [ideal, stock, _, policy] = &predicted[..] else {
            continue;
        };
        let mean = |rates: &[f64]| Summary::of(rates).map(|summary| summary.mean);
        rows.push(PredictedRow {
            shape: shape(&scenario),
            lock: scenario.vms[0].lock.name().to_owned(),
            ideal_per_s: mean(ideal),
            stock_per_s: mean(stock),
            policy: POLICY.to_owned(),
            steer_per_s: mean(policy),
            gap_closed: GapClosed::of(ideal, stock, policy)
                .filter(|_| !fits(cell.text))
                .map(|gap| gap.share),
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_valid() {
        let looked_at = |cell: &Cell| cell.plan.observe == Observe::On;
        let all = cells(2, false, Vendor::Amd);
        assert_eq!(
            all.iter().filter(|cell| looked_at(cell)).count(),
            all.len() - 2
        );
        for cell in all {
            assert!(
                cell.scenario().is_ok() && cell.plan.policies.len() == 1,
                "{}",
                cell.name()
            );
        }
        assert!(
            cells(2, true, Vendor::Amd)
                .iter()
                .all(|cell| cell.plan.policies.is_empty())
        );
    }
}
