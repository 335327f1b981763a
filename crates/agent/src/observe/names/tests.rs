// SPDX-License-Identifier: MIT OR Apache-2.0
//! A /proc of files.

use super::*;
use std::fs;

fn task(proc: &Path, thread: u32, process: u32, comm: &str, start_ticks: u64) {
    let folder = proc.join(thread.to_string());
    fs::create_dir_all(&folder).expect("a folder");
    let zeroes = "0 ".repeat(18);
    let rest = " 0".repeat(30);
    let stat = format!("{thread} ({comm}) S {zeroes}{start_ticks}{rest}\n");
    fs::write(folder.join("stat"), stat).expect("room");
    let status = format!("Name:\t{comm}\nUmask:\t0022\nTgid:\t{process}\n");
    fs::write(folder.join("status"), status).expect("room");
}

fn switch(time_ns: u64, vm: u32, vcpu: u16, thread: u32, previous_thread: u32) -> Event {
    Event {
        time_ns,
        vm: Some(vm),
        vcpu: Some(vcpu),
        thread,
        cpu: 0,
        what: What::SwitchIn {
            previous_thread,
            previous_vm: None,
        },
    }
}

fn names(tasks: &[TaskFacts]) -> Vec<(u32, &str, u64)> {
    tasks
        .iter()
        .map(|task| (task.thread, task.comm.as_str(), task.first_seen_ns))
        .collect()
}

#[test]
fn vms_and_tasks_are_named_when_first_seen() {
    let proc = tempfile::tempdir().expect("a folder");
    task(proc.path(), 100, 100, "qemu-system-x86", 5_000);
    task(proc.path(), 101, 100, "CPU 0/KVM", 5_010);
    task(proc.path(), 50, 50, "odd) name (\u{1b}[2J", 70);
    let line =
        "/usr/bin/qemu-system-x86_64\0-m\x001G\0-name\0guest=web,debug-threads=on\0-password\0x";
    fs::write(proc.path().join("100/cmdline"), line).expect("room");
    let mut seen = Names::below(proc.path());
    seen.see(&switch(1_000, 3, 0, 101, 50));
    seen.see(&switch(2_000, 3, 0, 101, 0));
    seen.see(&switch(2_500, 3, 1, 102, 999));
    seen.look();
    let [vm] = seen.vms() else {
        panic!("one VM: {:?}", seen.vms())
    };
    assert_eq!(
        (vm.vm, vm.process, vm.process_start_ticks),
        (3, Some(100), Some(5_000))
    );
    assert_eq!(vm.comm.as_deref(), Some("qemu-system-x86"));
    assert_eq!(vm.identity.name.as_deref(), Some("web"));
    let spans: Vec<_> = vm
        .vcpus
        .iter()
        .map(|vcpu| (vcpu.vcpu, vcpu.thread, vcpu.first_ns, vcpu.last_ns))
        .collect();
    assert_eq!(spans, [(0, 101, 1_000, 2_000), (1, 102, 2_500, 2_500)]);
    // 102 and 999 have ended: they have no name, and no other one's.
    assert_eq!(
        names(seen.tasks()),
        [(101, "CPU 0/KVM", 1_000), (50, "odd) name (?[2J", 1_000)]
    );
}

#[test]
fn a_reused_id_and_a_changed_name_are_new_incarnations() {
    let proc = tempfile::tempdir().expect("a folder");
    task(proc.path(), 50, 50, "sh", 70);
    let mut seen = Names::below(proc.path());
    seen.see(&switch(1_000, 0, 0, 101, 50));
    seen.look();
    seen.see(&switch(2_000, 0, 0, 101, 50));
    seen.refresh(2_100);
    assert_eq!(names(seen.tasks()), [(50, "sh", 1_000)]);
    task(proc.path(), 50, 50, "make", 70); // it called execve()
    seen.see(&switch(3_000, 0, 0, 101, 50));
    seen.refresh(3_100);
    task(proc.path(), 50, 50, "make", 99); // another one
    seen.refresh(3_200); // not seen since
    seen.see(&switch(4_000, 0, 0, 101, 50));
    seen.refresh(4_100);
    assert_eq!(
        names(seen.tasks()),
        [(50, "sh", 1_000), (50, "make", 3_100), (50, "make", 4_100)]
    );
    assert_eq!(seen.tasks()[2].start_ticks, Some(99));
    assert_eq!(seen.left_out(), 0);
}

#[test]
fn a_thread_that_serves_another_vm_belongs_to_both() {
    let proc = tempfile::tempdir().expect("a folder");
    let mut seen = Names::below(proc.path());
    seen.see(&switch(1_000, 0, 0, 101, 0));
    seen.see(&switch(2_000, 1, 0, 101, 0));
    let spans: Vec<_> = seen
        .vms()
        .iter()
        .map(|vm| (vm.vm, vm.vcpus[0].thread, vm.vcpus[0].first_ns, vm.process))
        .collect();
    assert_eq!(spans, [(0, 101, 1_000, None), (1, 101, 2_000, None)]);
}

#[test]
fn a_number_that_has_gone_to_another_process_names_no_vm() {
    let proc = tempfile::tempdir().expect("a folder");
    task(proc.path(), 101, 100, "CPU 0/KVM", 5_010);
    // The VM's process has ended, and its number is a later one's.
    task(proc.path(), 100, 100, "qemu-system-x86", 9_000);
    fs::write(proc.path().join("100/cmdline"), "kvm\0-name\0other\0").expect("room");
    let mut seen = Names::below(proc.path());
    seen.see(&switch(1_000, 3, 0, 101, 50));
    let vm = &seen.vms()[0];
    assert_eq!((vm.process, vm.process_start_ticks), (Some(100), None));
    assert_eq!(vm.identity.called(), None);
    assert_eq!(vm.comm, None);
}

#[test]
fn only_qemu_tells_features() {
    let proc = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(proc.path().join("7")).expect("a folder");
    let features = |program: &str| {
        let line = format!("{program}\0-cpu\0host,kvm-pv-ipi=off\0-append\0nopvspin\0");
        fs::write(proc.path().join("7/cmdline"), line).expect("room");
        qemu_features(proc.path(), 7)
    };
    assert_eq!(
        features("/usr/bin/qemu-system-x86_64").as_deref(),
        Some("nopvspin,pv-tlb-flush,pv-sched-yield,async-pf,steal-time")
    );
    assert_eq!(features("secret"), None);
}

#[test]
fn who_was_not_seen_for_long_is_forgotten_and_may_come_again() {
    let proc = tempfile::tempdir().expect("a folder");
    task(proc.path(), 100, 100, "qemu-system-x86", 5_000);
    for thread in [101, 102] {
        task(proc.path(), thread, 100, "CPU/KVM", 5_010);
    }
    for (thread, comm) in [(50, "sh"), (51, "make")] {
        task(proc.path(), thread, thread, comm, 70);
    }
    let mut seen = Names::below(proc.path());
    seen.see(&switch(1_000, 3, 0, 101, 50));
    seen.see(&switch(1_000, 4, 0, 102, 51));
    seen.look();
    seen.refresh(1_500);
    seen.see(&switch(5_000, 4, 0, 102, 51));
    seen.refresh(5_000);
    let changes = seen.changes();
    seen.forget(1_000);
    assert_eq!((seen.vms().len(), seen.tasks().len()), (2, 4));
    seen.forget(4_000);
    let vms: Vec<u32> = seen.vms().iter().map(|vm| vm.vm).collect();
    assert_eq!((vms, seen.vcpu_threads()), (vec![4], 1));
    assert_eq!(
        names(seen.tasks()),
        [(102, "CPU/KVM", 1_000), (51, "make", 1_000)]
    );
    // It goes on as before, and the other one is new.
    seen.see(&switch(6_000, 4, 0, 102, 51));
    assert_eq!(
        (seen.vms()[0].vcpus[0].last_ns, seen.changes()),
        (6_000, changes)
    );
    seen.see(&switch(7_000, 3, 0, 101, 50));
    seen.look();
    assert_eq!((seen.vms().len(), seen.tasks().len()), (2, 4));
    assert_eq!(seen.vms()[1].comm.as_deref(), Some("qemu-system-x86"));
    seen.forget(u64::MAX);
    assert_eq!(
        (seen.vms().len(), seen.tasks().len(), seen.vcpu_threads()),
        (0, 0, 0)
    );
}
