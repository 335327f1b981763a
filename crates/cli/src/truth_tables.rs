// SPDX-License-Identifier: MIT OR Apache-2.0
//! Table 1 of VEE'13 as the guest's own counters give it (ruling 10).

use unspin_report::{Column, Document, Table, Unit};

use crate::{failure::Failure, vm_run::Run};

const TABLE_1: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("acquisitions", "acquisitions N", Unit::Count),
    Column::new("stalls", "stalls Nh + Nw", Unit::Count),
    Column::new("stalls_unheld", "unheld Nw", Unit::Count),
    Column::new("stalls_unheld_percent", "Nw / (Nh + Nw) %", Unit::Percent),
    Column::new("log_kept", "waits logged", Unit::Count),
    Column::new("log_dropped", "not logged", Unit::Count),
];

/// Adds Table 1.
pub fn add(document: &mut Document, run: &Run) -> Result<(), Failure> {
    let mut table = Table::new(
        "table1",
        "VEE'13 Table 1: waits of more than 2,048 turns, and whether anybody held the lock then",
        TABLE_1,
    );
    for vm in &run.report.vms {
        let sum = |of: fn(&unspin_abi::unspin_guest_statistics) -> u64| -> u64 {
            vm.vcpus.iter().map(|vcpu| of(&vcpu.statistics)).sum()
        };
        let (stalls, unheld) = (sum(|s| s.stalls), sum(|s| s.stalls_unheld));
        table.push(vec![
            vm.name.as_str().into(),
            run.scenario
                .vms
                .get(vm.group)
                .map(|group| group.lock.name())
                .into(),
            sum(|s| s.operations).into(),
            stalls.into(),
            unheld.into(),
            (stalls > 0)
                .then(|| 100.0 * unheld as f64 / stalls as f64)
                .into(),
            sum(|s| s.log_kept).into(),
            sum(|s| s.log_dropped).into(),
        ]);
    }
    document.table(table);
    Ok(())
}
