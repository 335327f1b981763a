// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which VM a name means.

mod common;

use common::{Proc, fixture};
use unspin_vms::{process_of, running};

/// A host with VMs of several managers.
fn host() -> Proc {
    let proc = Proc::new();
    for (number, name) in [
        (100, "libvirt"),
        (110, "nova"),
        (120, "proxmox"),
        (130, "kubevirt"),
        (140, "cloud-hypervisor"),
        (150, "qemu"),
    ] {
        let (line, cgroup) = fixture(name);
        proc.process(number, 5_000, b"vmm", &line, &cgroup);
        proc.opens(number, 9, "anon_inode:kvm-vm");
    }
    // A shell, and a QEMU without KVM.
    proc.process(101, 5_000, b"sh", b"sh\0", b"0::/");
    proc.opens(101, 0, "/dev/null");
    proc.process(
        160,
        5_000,
        b"qemu",
        b"qemu-system-x86_64\0-name\0slow\0",
        b"0::/",
    );
    proc.opens(160, 0, "/dev/null");
    proc
}

fn means(proc: &Proc, asked: &str) -> Result<u32, String> {
    process_of(proc.path(), asked).map_err(|error| error.to_string())
}

#[test]
fn vms_are_those_that_hold_one() {
    let proc = host();
    let found = running(proc.path());
    let numbers: Vec<u32> = found.vms.iter().map(|vm| vm.process).collect();
    assert_eq!(numbers, [100, 110, 120, 130, 140, 150]);
    assert_eq!(found.hidden, 0);
    // Where open files may not be looked at the program decides.
    let proc = Proc::new();
    proc.process(
        160,
        5_000,
        b"qemu",
        b"qemu-system-x86_64\0-name\0web\0",
        b"0::/",
    );
    proc.process(161, 5_000, b"sh", b"sh\0", b"0::/");
    assert_eq!(running(proc.path()).vms.len(), 1);
}

#[test]
fn names_uuids_ids_and_processes_mean_vms() {
    let proc = host();
    proc.end(140); // it is called web-3, too
    for (asked, process) in [
        ("web-3", 100),
        ("4DEA22B3-1d52-d8f3-2516-782e98ab3fa0", 100),
        ("100", 100),
        ("instance-0000abcd", 110),
        ("web", 120),
        ("vmi-fedora", 130),
        ("default/vmi-fedora", 130),
        ("debian", 150),
    ] {
        assert_eq!(means(&proc, asked), Ok(process), "{asked}");
    }
}

#[test]
fn a_number_is_a_vm_s_process_or_its_id_before_any_process() {
    let proc = host();
    // 101 is a shell's number and Proxmox's id.
    assert_eq!(means(&proc, "101"), Ok(120));
    // No VM yet, but a process.
    assert_eq!(means(&proc, "160"), Ok(160));
    let (line, cgroup) = fixture("qemu");
    proc.process(101, 5_000, b"vmm", &line, &cgroup);
    proc.opens(101, 9, "anon_inode:kvm-vm");
    let error = means(&proc, "101").expect_err("two");
    assert_eq!(
        error,
        "`101` may be 2 VMs: debian (process 101), web (process 120); say the process or the UUID"
    );
    assert!(means(&proc, "4000000").is_err());
}

#[test]
fn what_is_ambiguous_or_unknown_lists_those_near() {
    let proc = host();
    assert_eq!(
        means(&proc, "web-3").expect_err("two"),
        "`web-3` may be 2 VMs: web-3 (process 100), web-3 (process 140); say the process or the UUID"
    );
    let near = means(&proc, "vmi-fedroa").expect_err("none");
    assert_eq!(
        near,
        "there is no VM `vmi-fedroa`; near: default/vmi-fedora (process 130)"
    );
    let begins = means(&proc, "4dea").expect_err("none");
    assert!(begins.contains("near: web-3 (process 100)"), "{begins}");
    let far = means(&proc, "qqqq").expect_err("none");
    assert!(
        far.contains("; there are: web-3 (process 100), ") && far.ends_with(" and 1 more"),
        "{far}"
    );
    assert_eq!(
        means(&Proc::new(), "web").expect_err("none"),
        "there is no VM `web`; there are no VMs"
    );
    let hostile = means(&Proc::new(), &"\u{1b}[2J\n".repeat(100)).expect_err("none");
    assert!(
        hostile.chars().count() < 120 && !hostile.contains(char::is_control),
        "{hostile:?}"
    );
}
