// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands behind the rows of a comparison: one row for each VM and column, one for each sample. The fields are the
//! keys of the JSON rows.

use serde::Deserialize;
use unspin_scenario::Scenario;

use super::{Sample, VmSample, WindowSample};
use crate::{
    plan::{Column, Plan},
    row::{lock, shape},
    sample::{Sample as _, Samples},
};

unspin_report::row! {
    "vm", ["compare", "demo"];
    /// One VM in one column: who gets what.
    #[derive(Clone, Debug, Deserialize)]
    pub struct VmRow {
        /// VMs x vCPUs of the scenario.
        pub shape: String = ("VMs x vCPUs", Text),
        /// The first group's lock.
        pub lock: String = ("lock", Text),
        /// `stock`, `refuse-yields` or the policy.
        pub column: String = ("scheduled by", Text),
        /// `vm0`.
        pub vm: String = ("VM", Text),
        /// Acquisitions per second, mean over the pairs.
        pub operations_per_s: f64 = ("ops/s", Count),
        /// Share of all VMs' acquisitions; none when there were none.
        pub operations_share_percent: Option<f64> = ("of all ops %", Percent),
        /// Share of all VMs' CPU time; none when there was none.
        pub cpu_share_percent: Option<f64> = ("of all CPU time %", Percent),
        /// Pairs behind it.
        pub pairs: u64,
        /// Of the scenario's canonical text.
        pub scenario_sha256: String,
    }
}

unspin_report::row! {
    "sample", ["compare", "demo"];
    /// One sample, as it was measured: what all other figures follow from.
    #[derive(Clone, Debug, Deserialize)]
    pub struct SampleRow {
        /// VMs x vCPUs of the scenario.
        pub shape: String,
        /// The first group's lock.
        pub lock: String,
        /// `ideal`, `stock`, `stock again`, `refuse-yields` or the policy.
        pub column: String,
        /// From 0; odd ones were measured in the opposite order.
        pub pair: u64,
        /// Acquisitions per second of all VMs together.
        pub operations_per_s: f64,
        /// Time that their vCPUs were in their guests and did not spin, ns per second, as the policy `auto` sees it (`--useful-time`).
        pub useful_ns_per_s: Option<f64>,
        /// APPLE's inefficiency in it (ruling 17); none where windows were not compared.
        pub inefficiency_percent: Option<f64>,
        /// The mean window at its pause-loop exits (ruling 19).
        pub window_mean: Option<f64>,
        /// Of the scenario's canonical text.
        pub scenario_sha256: String,
    }
}

/// Every sample, column by column.
pub fn sample_rows(scenario: &Scenario, plan: &Plan, samples: &Samples<Sample>) -> Vec<SampleRow> {
    samples
        .taken
        .iter()
        .map(|((column, pair), sample)| SampleRow {
            shape: shape(scenario),
            lock: lock(scenario),
            column: plan.column_name(*column),
            pair: *pair as u64,
            operations_per_s: sample.per_second(),
            useful_ns_per_s: sample.useful_ns_per_s,
            inefficiency_percent: sample
                .windows
                .as_ref()
                .and_then(WindowSample::inefficiency_percent),
            window_mean: sample.windows.as_ref().and_then(WindowSample::mean_window),
            scenario_sha256: scenario.hash(),
        })
        .collect()
}

/// What each VM got, in each column but the ideal.
pub fn vm_rows(scenario: &Scenario, plan: &Plan, samples: &Samples<Sample>) -> Vec<VmRow> {
    let mut columns = vec![(Column::Stock, "stock".to_owned())];
    if !plan.policies.is_empty() {
        columns.push((Column::RefuseYields, "refuse-yields".to_owned()));
    }
    columns.extend(plan.judged());
    let mut rows = Vec::new();
    for (column, name) in columns {
        let samples = samples.of(column);
        let vms = samples.first().map_or(0, |sample| sample.vms.len());
        let sum = |of: &dyn Fn(&VmSample) -> f64, only: Option<usize>| -> f64 {
            let vms = samples.iter().flat_map(|sample| {
                let vms = sample.vms.iter().enumerate();
                vms.filter(|(vm, _)| only.is_none_or(|only| only == *vm))
            });
            vms.map(|(_, vm)| of(vm)).sum()
        };
        let share = |of: &dyn Fn(&VmSample) -> f64, vm| {
            let all = sum(of, None);
            (all > 0.0).then(|| 100.0 * sum(of, Some(vm)) / all)
        };
        for vm in 0..vms {
            rows.push(VmRow {
                shape: shape(scenario),
                lock: lock(scenario),
                column: name.clone(),
                vm: format!("vm{vm}"),
                operations_per_s: sum(&|vm| vm.operations_per_s, Some(vm)) / samples.len() as f64,
                operations_share_percent: share(&|vm| vm.operations_per_s, vm),
                cpu_share_percent: share(&|vm| vm.cpu_ns as f64, vm),
                pairs: samples.len() as u64,
                scenario_sha256: scenario.hash(),
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::kvm::tests::{AGAIN, IDEAL, NONE, STOCK, measured, plan, scenario};

    #[test]
    fn each_vm_has_its_share_in_each_column() {
        let loan = (Column::Policy(0), [800.0; 4]);
        let measured = measured(&[IDEAL, STOCK, AGAIN, NONE, loan]);
        let rows = vm_rows(&scenario(), &plan(&["loan"]), &measured);
        let columns: Vec<&str> = rows.iter().map(|row| row.column.as_str()).collect();
        assert_eq!(
            columns,
            [
                "stock",
                "stock",
                "refuse-yields",
                "refuse-yields",
                "loan",
                "loan"
            ]
        );
        let last = &rows[5];
        assert_eq!(
            (last.vm.as_str(), last.operations_per_s, last.pairs),
            ("vm1", 600.0, 4)
        );
        assert_eq!(last.operations_share_percent, Some(75.0));
        assert_eq!(last.cpu_share_percent, Some(75.0));
    }

    #[test]
    fn every_sample_is_there_by_its_name() {
        let loan = (Column::Policy(0), [800.0; 4]);
        let measured = measured(&[IDEAL, STOCK, AGAIN, NONE, loan]);
        let rows = sample_rows(&scenario(), &plan(&["loan"]), &measured);
        assert_eq!(rows.len(), 5 * 4);
        let again: Vec<f64> = rows
            .iter()
            .filter(|row| row.column == "stock again")
            .map(|row| row.operations_per_s)
            .collect();
        assert_eq!(again, AGAIN.1);
        assert_eq!((rows[19].column.as_str(), rows[19].pair), ("loan", 3));
    }
}
