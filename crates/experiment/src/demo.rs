// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demo's table: a handful of shapes and locks, each ideal, stock and under a remedy, in cells of their own.

use std::time::Duration;

use unspin_scenario::Scenario;

use crate::{Plan, cells::Cell, watch::Observe};

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

/// The demo's rows, of so many pairs of samples each; on somebody's host without a policy: another scheduler for all of it is
/// not what a demonstration may bring.
pub fn cells(pairs: u32, on_this_host: bool) -> Vec<Cell> {
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
    };
    FILES
        .iter()
        .map(|(file, text)| Cell {
            file,
            text,
            set: Vec::new(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_valid() {
        let looked_at = |cell: &Cell| cell.plan.observe == Observe::On;
        let all = cells(2, false);
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
            cells(2, true)
                .iter()
                .all(|cell| cell.plan.policies.is_empty())
        );
    }
}
