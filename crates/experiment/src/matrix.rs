// SPDX-License-Identifier: MIT OR Apache-2.0
//! The matrix of `unspin compare --full`: locks, shapes, pause-loop windows, guests that say what they wait for and guests
//! that do not, and the policies that are for them.

use std::time::Duration;

use unspin_agent::PolicyChoice;

use crate::{cells::Cell, plan::Plan, watch::Observe};

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        /// Their files, as they stand in `scenarios/compare/`, so that the one binary is enough.
        const SCENARIOS: &[(&str, &str)] = &[$((
            concat!("scenarios/compare/", $name, ".toml"),
            include_str!(concat!("../../../scenarios/compare/", $name, ".toml")),
        )),*];
    };
}
scenarios!("ticket", "preemptable_ticket", "test_and_test_and_set");

/// VMs x vCPUs on 2 CPUs. The first fits: there, only harm can be done. Those that take longest come last in the list and
/// are run first.
const SHAPES: [(u32, u32); 4] = [(1, 2), (2, 2), (1, 4), (2, 4)];
/// PAUSEs until an exit: a short window, and KVM's default.
const WINDOWS: [u32; 2] = [200, 3_000];
/// For guests that register a pv page.
const COOPERATING: [&str; 9] = [
    "directed-yield",
    "kernel-exit",
    "loan",
    "loan,kernel-exit",
    "debooster,candidates=strict",
    "lag-credit",
    "loan,lag-credit",
    "gang",
    "loan,gang",
];
/// For guests that do not.
const OTHERS: [&str; 8] = [
    "kernel-exit",
    "loan-cpl",
    "loan-cpl,kernel-exit",
    "debooster,candidates=strict",
    "lag-credit",
    "loan-cpl,lag-credit",
    "gang",
    "loan-cpl,gang",
];

/// What is the same in all cells.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// Pairs of samples.
    pub pairs: u32,
    /// Length of each.
    pub sample: Duration,
    /// What is left out after each change.
    pub discard: Duration,
    /// Whether stock is watched at the end.
    pub observe: Observe,
}

/// All cells, those that take longest first. `own_window`: as the host's KVM has it, nothing else.
pub fn cells(common: Common, own_window: bool) -> Vec<Cell> {
    let windows = if own_window {
        &WINDOWS[..1]
    } else {
        &WINDOWS[..]
    };
    let mut cells = Vec::new();
    for (count, vcpus) in SHAPES.into_iter().rev() {
        for window in windows {
            for (file, text) in SCENARIOS {
                for (pv_page, names) in [(true, &COOPERATING[..]), (false, &OTHERS[..])] {
                    let mut set = set_shape(count, vcpus).to_vec();
                    if !own_window {
                        set.push(format!("host.ple_window={window}"));
                    }
                    set.push(format!("vm.pv_page={pv_page}"));
                    cells.push(Cell {
                        file,
                        text,
                        set,
                        plan: Plan {
                            pairs: common.pairs,
                            sample: common.sample,
                            discard: common.discard,
                            observe: common.observe,
                            policies: policies(names),
                        },
                    });
                }
            }
        }
    }
    cells
}

/// A shape as overrides.
pub fn set_shape(count: u32, vcpus: u32) -> [String; 2] {
    [format!("vm.count={count}"), format!("vm.vcpus={vcpus}")]
}

fn policies(names: &[&str]) -> Vec<PolicyChoice> {
    let policy = |name: &&str| name.parse().expect("the tests parse all of them");
    names.iter().map(policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cell_is_valid_and_there_once() {
        let common = Common {
            pairs: 4,
            sample: Duration::from_millis(500),
            discard: Duration::from_millis(250),
            observe: Observe::On,
        };
        let all = cells(common, false);
        assert_eq!(all.len(), 3 * 4 * 2 * 2);
        let identities: BTreeSet<String> = all
            .iter()
            .map(|cell| cell.identity().expect("a valid cell"))
            .collect();
        assert_eq!(identities.len(), all.len());
        assert_eq!(cells(common, true).len(), 3 * 4 * 2);
        for cell in &all {
            let scenario = cell.scenario().expect("valid");
            let pv_page = scenario.vms[0].pv_page;
            let names: Vec<String> = cell.plan.policies.iter().map(ToString::to_string).collect();
            assert_eq!(
                names.contains(&"loan".to_owned()),
                pv_page,
                "{}",
                cell.name()
            );
            assert!(scenario.host.ple_window_fixed);
        }
    }
}
