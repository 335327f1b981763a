// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this process needs of the system's limits.
use unspin_scenario::Scenario;

/// Descriptors beside those of VMs and vCPUs: standard streams, KVM, an observer's maps and links.
const OTHER_FILES: u64 = 256;

/// Raises the soft limit of open files, as far as the hard one goes: each VM and each vCPU is one. Too few show as
/// an error of the VM that found none left.
pub fn allow_open_files(scenario: &Scenario) {
    let needed = files_needed(scenario);
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a live rlimit for the kernel to fill in.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 || limit.rlim_cur >= needed
    {
        return;
    }
    limit.rlim_cur = needed.min(limit.rlim_max);
    // SAFETY: the kernel only reads `limit`.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}

fn files_needed(scenario: &Scenario) -> u64 {
    let per_group = scenario
        .vms
        .iter()
        .map(|vm| u64::from(vm.count) * (1 + u64::from(vm.vcpus)));
    OTHER_FILES + per_group.sum::<u64>()
}
