// SPDX-License-Identifier: MIT OR Apache-2.0
//! The VMs that run on a host now.

use std::{fs, path::Path};

use crate::process::{Look, VmProcess, has_vm, look, runs_vms};

/// VMs of a host, by process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Those that may be looked at.
    pub vms: Vec<VmProcess>,
    /// Processes that are listed and may not be looked at: there may be VMs among them.
    pub hidden: usize,
}

/// All VMs below `proc` (/proc): processes that hold a VM of KVM's; where their open files may not be looked at, those whose
/// program is a VMM.
pub fn running(proc: &Path) -> Running {
    let mut found = Running::default();
    for process in numbers(proc) {
        match look(proc, process) {
            Look::Found(vm) => {
                let runs = has_vm(proc, process).unwrap_or_else(|| runs_vms(vm.identity.kind));
                if runs {
                    found.vms.push(vm);
                }
            }
            Look::Hidden => found.hidden += 1,
            Look::Ended => {}
        }
    }
    found
}

fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}
