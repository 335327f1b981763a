// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever a process says of itself: it is looked at without harm, and what is shown is printable and short.

mod common;

use std::{
    io::Read,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use common::Proc;
use proptest::{collection::vec, prelude::*};
use unspin_events::vm_identity::{NAME_LENGTH_MAX, printable};
use unspin_vms::{Look, look, process_of};

/// Words that mean something here, and any bytes.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "qemu-system-x86_64",
        "kvm",
        "firecracker",
        "cloud-hypervisor",
        "-name",
        "--name",
        "guest=",
        "guest=a_b",
        "-uuid",
        "-id",
        "101",
        "--id=",
        "-smbios",
        "type=1,uuid=",
        "--api-socket",
        "path=/",
        "0::/",
        "/qemu.slice/1.scope",
        r"machine-qemu\x2d1\x2d",
        "\\x",
        ".scope",
        "pod",
        ",",
        "\n",
        ":",
        "_",
    ]);
    prop_oneof![
        known.prop_map(|text| text.as_bytes().to_vec()),
        vec(any::<u8>(), 0..40)
    ]
}

fn bytes(separator: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    vec(word(), 0..12).prop_map(move |words| words.join(separator))
}

fn is_safe(text: &str) -> bool {
    text.chars().count() <= 4 * NAME_LENGTH_MAX && printable(text, usize::MAX) == text
}

proptest! {
    #[test]
    fn what_is_shown_is_printable_and_short(line in bytes(b"\0"), cgroup in bytes(b""), comm in vec(any::<u8>(), 0..16)) {
        let proc = Proc::new();
        proc.process(4_000_100, 5, &comm, &line, &cgroup);
        if let Look::Found(found) = look(proc.path(), 4_000_100) {
            let of = &found.identity;
            let texts = [&of.name, &of.uuid, &of.id, &of.namespace, &of.pod_uid, &of.name_problem];
            prop_assert!(texts.into_iter().flatten().all(|text| is_safe(text) && !text.is_empty()), "{of:?}");
            prop_assert!(is_safe(&found.called()), "{:?}", found.called());
        }
    }

    #[test]
    fn whatever_is_asked_for_the_answer_can_be_printed(asked in ".*") {
        let proc = Proc::new();
        if let Err(error) = process_of(proc.path(), &asked) {
            prop_assert!(is_safe(&error.to_string()), "{error:?}");
        }
    }
}

#[test]
fn a_real_process_is_named_until_it_ends() {
    // A shell that says it is a QEMU, and waits for its standard input to end. It runs before it is looked at: spawn() returns while
    // the kernel still sets its arguments up, and /proc shows none until then (exec_mmap() wakes the parent before
    // create_elf_tables(); fs/exec.c of Linux 6.12).
    let mut vm = Command::new("/bin/sh")
        .arg0("/usr/bin/kvm")
        .args([
            "-c",
            "echo it runs; read line",
            "-name",
            "guest=real-one,debug-threads=on",
            "-uuid",
        ])
        .arg("4DEA22B3-1D52-D8F3-2516-782E98AB3FA0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut said = [0; 7];
    let out = vm.stdout.as_mut().expect("a pipe");
    out.read_exact(&mut said).expect("it runs");
    let proc = Path::new("/proc");
    let Look::Found(found) = look(proc, vm.id()) else {
        panic!("it runs")
    };
    assert_eq!(found.called(), "real-one");
    assert_eq!(
        found.identity.uuid.as_deref(),
        Some("4dea22b3-1d52-d8f3-2516-782e98ab3fa0")
    );
    assert!(found.start_ticks > 0);
    drop(vm.stdin.take());
    vm.wait().expect("it ends");
    assert_eq!(look(proc, found.process), Look::Ended);
}
