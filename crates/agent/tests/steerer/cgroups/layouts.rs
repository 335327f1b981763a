// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trees of cgroups as systemd, libvirt, Kubernetes and Proxmox lay them out, with what they set in them.

use std::{fs, time::Duration};
use unspin_testbed::check;

use super::{
    super::host::{Busy, Cgroup, attach, still_there},
    quotas::{are_near, hogs, limited, rates, settle},
};

fn set(cgroup: &Cgroup, file: &str, value: &str) {
    fs::write(cgroup.folder().join(file), value).expect("the controller has it");
}

check!(STEERER_LONG: trees_of_distributions_are_kept);
/// Two CPUs of which systemd's slices ask for all; what each leaf is due follows from the weights and quotas above it.
fn trees_of_distributions_are_kept() {
    let system = Cgroup::new("system.slice", 100);
    let user = Cgroup::new("user.slice", 100);
    // libvirt: <shares> and <vcpu_quota> of a machine, a cgroup for each vCPU and one for the emulator.
    let _machines = Cgroup::new("machine.slice", 200);
    let _scope = Cgroup::new("machine.slice/qemu-1.scope", 100);
    let _libvirt = Cgroup::new("machine.slice/qemu-1.scope/libvirt", 100);
    let vcpus = [0, 1].map(|vcpu| {
        let place = format!("machine.slice/qemu-1.scope/libvirt/vcpu{vcpu}");
        limited(&place, 20_000, 100_000)
    });
    let emulator = Cgroup::new("machine.slice/qemu-1.scope/libvirt/emulator", 100);
    // Kubernetes: a pod with a limit of 250m, one of best effort.
    let _pods = Cgroup::new("kubepods.slice", 100);
    let _burstable = Cgroup::new("kubepods.slice/burstable.slice", 100);
    let pod = limited("kubepods.slice/burstable.slice/pod1.slice", 25_000, 100_000);
    let _best_effort = Cgroup::new("kubepods.slice/besteffort.slice", 1);
    let effort = Cgroup::new("kubepods.slice/besteffort.slice/pod2.slice", 100);
    // Proxmox: a machine with `cpuunits`, and one that others come before: cpu.idle.
    let _qemu = Cgroup::new("qemu.slice", 100);
    let machine = Cgroup::new("qemu.slice/100.scope", 50);
    let background = Cgroup::new("qemu.slice/101.scope", 100);
    set(&background, "cpu.idle", "1");
    let leaves = [
        &system,
        &user,
        &vcpus[0],
        &vcpus[1],
        &emulator,
        &pod,
        &effort,
        &machine,
        &background,
    ];
    let _hogs: Vec<Vec<Busy>> = leaves.iter().map(|leaf| hogs(2, leaf)).collect();
    let time = Duration::from_secs(3);
    settle();
    println!("  {:.4?} with the kernel's scheduler", rates(&leaves, time));
    let steerer = attach();
    settle();
    // Weights 100, 100, 200, 100, 100 of 2 CPUs at the top.
    let wanted = [0.333, 0.333, 0.2, 0.2, 0.267, 0.25];
    let given = rates(&leaves, time);
    are_near(&given[..wanted.len()], &wanted, 10.0);
    are_near(&given[7..8], &[0.332], 10.0);
    // A weight of 1 beside a pod that is throttled now and then: 0.083 is due (docs/known-issues.md).
    println!(
        "  besteffort: {:.4} CPUs, cpu.idle: {:.4}",
        given[6], given[8]
    );
    assert!(given[6] > 0.006, "besteffort: {given:?}");
    assert!(given[8] < 0.01, "cpu.idle: {given:?}");
    // It is taken back while it runs, and has the weight of the fair class then.
    set(&background, "cpu.idle", "0");
    settle();
    let given = rates(&leaves, time);
    are_near(&given[7..], &[0.111, 0.222], 12.0);
    set(&background, "cpu.idle", "1");
    settle();
    let given = rates(&leaves, time);
    assert!(given[8] < 0.01, "cpu.idle: {given:?}");
    still_there(&steerer);
}
