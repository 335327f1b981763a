// SPDX-License-Identifier: MIT OR Apache-2.0
//! eCS on a real KVM: critical sections that are not cut, what guests are told, and who pays (rulings 22 to 25).

use unspin_agent::Steerer;
use unspin_scenario::{LockSharing, Vm};
use unspin_vmm::RunReport;

use crate::{
    checks::{counter, still_there},
    observer_vms::{loops, run_for},
    vms::{fighting, operations, steer},
};

/// What runs in a boot of its own.
pub static CHECKS: [(&str, fn()); 1] = [("sections_are_not_cut", sections_are_not_cut)];

/// A VM that is in a critical section for a third of its time, and whose vCPUs do not wait for one another.
pub fn annotated(vcpus: u32) -> Vm {
    Vm {
        locks: LockSharing::Private,
        user_work: loops(20_000),
        hold: loops(10_000),
        ..fighting(vcpus)
    }
}

/// eCS's account of one run.
#[derive(Clone, Copy, Debug)]
struct Account {
    ended: u64,
    ends: u64,
    lost: u64,
    granted: u64,
    granted_ns: u64,
    operations: u64,
}

const NAMES: [&str; 5] = [
    "ended",
    "critical_ends",
    "critical_lost",
    "granted",
    "granted_ns",
];

/// Of so many milliseconds of these VMs under those policies.
fn account(steerer: &Steerer, policies: &str, milliseconds: u64, vms: Vec<Vm>) -> Account {
    steerer
        .set_policies(policies.parse().expect("policies"))
        .expect("at any time");
    let before = NAMES.map(|name| counter(steerer, name));
    let report: RunReport = run_for(milliseconds, vms);
    still_there(steerer);
    let after = NAMES.map(|name| counter(steerer, name));
    let [ended, ends, lost, granted, granted_ns] =
        std::array::from_fn(|index| after[index] - before[index]);
    Account {
        ended,
        ends,
        lost,
        granted,
        granted_ns,
        operations: operations(&report),
    }
}

fn sections_are_not_cut() {
    let steerer = steer("none", |_| ());
    for (vms, vcpus) in [(2, 2), (1, 4), (2, 4)] {
        for private in [true, false] {
            let vm = if private {
                annotated(vcpus)
            } else {
                fighting(vcpus)
            };
            let vm = Vm { count: 1, ..vm };
            for policies in ["none", "directed-yield", "ecs", "ecs-give-back"] {
                let account = account(&steerer, policies, 400, vec![vm.clone(); vms]);
                println!("  {vms}x{vcpus} private {private} {policies}: {account:?}");
            }
        }
    }
}
