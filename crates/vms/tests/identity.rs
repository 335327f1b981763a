// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of every manager, as files: a word of the command line on each line of `fixtures/*/cmdline`, and `cgroup` as the
//! kernel prints it.

mod common;

use common::{Proc, fixture};
use unspin_events::vm_identity::{NAME_LENGTH_MAX, VmIdentity, VmKind};
use unspin_vms::{Look, look};

fn identity_of(name: &str) -> VmIdentity {
    let proc = Proc::new();
    let (line, cgroup) = fixture(name);
    proc.process(100, 5_000, b"vmm", &line, &cgroup);
    proc.found(100).identity
}

fn identity(kind: VmKind, name: Option<&str>, uuid: Option<&str>, id: Option<&str>) -> VmIdentity {
    VmIdentity {
        kind,
        name: name.map(str::to_owned),
        uuid: uuid.map(str::to_owned),
        id: id.map(str::to_owned),
        ..VmIdentity::default()
    }
}

#[test]
fn every_manager_s_vms_are_named() {
    use VmKind::{CloudHypervisor, Firecracker, Libvirt, Nova, Other, Proxmox, Qemu, Unspin};
    let web = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";
    let old = "0e44be5a-ff12-52fb-9413-07b52f3593c3";
    let instance = "5b5d8b0e-4a3f-4f0d-9d0c-0b9c7a2f6e11";
    let number = "c1a7d7a5-6a52-4c0c-8a57-0b6f4a0f5a11";
    let platform = "7d444840-9dc0-11d1-b245-5ffdce74fad2";
    let socket = "/run/cloud-hypervisor/web-3.sock";
    let micro = "551e7604-e35c-42b3-b825-416853441234";
    for (fixture, expected) in [
        ("libvirt", identity(Libvirt, Some("web-3"), Some(web), None)),
        (
            "libvirt-cgroup1",
            identity(Libvirt, Some("db_1 (old)"), Some(old), None),
        ),
        (
            "nova",
            identity(
                Nova,
                Some("instance-0000abcd"),
                Some(instance),
                Some("instance-0000abcd"),
            ),
        ),
        (
            "proxmox",
            identity(Proxmox, Some("web"), Some(number), Some("101")),
        ),
        (
            "cloud-hypervisor",
            identity(CloudHypervisor, Some("web-3"), Some(platform), Some(socket)),
        ),
        (
            "firecracker",
            identity(Firecracker, None, None, Some(micro)),
        ),
        (
            "firecracker-without-id",
            identity(Firecracker, None, None, None),
        ),
        ("qemu", identity(Qemu, Some("debian"), None, None)),
        ("unspin", identity(Unspin, None, None, None)),
        ("another-program", identity(Other, None, None, None)),
    ] {
        assert_eq!(identity_of(fixture), expected, "{fixture}");
    }
}

#[test]
fn kubevirt_s_have_a_namespace_and_a_pod() {
    let pod = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0";
    for (fixture, namespace, name, called) in [
        ("kubevirt", "default", "vmi-fedora", "default/vmi-fedora"),
        ("kubevirt-cgroupfs", "prod", "db_1", "prod/db_1"),
    ] {
        let found = identity_of(fixture);
        assert_eq!(found.kind, VmKind::Kubevirt, "{fixture}");
        assert_eq!(found.namespace.as_deref(), Some(namespace));
        assert_eq!(found.name.as_deref(), Some(name));
        assert_eq!(found.pod_uid.as_deref(), Some(pod));
        assert_eq!(found.called().as_deref(), Some(called));
    }
}

#[test]
fn the_host_s_cgroup_goes_before_what_a_process_says() {
    let (line, _) = fixture("libvirt");
    let proc = Proc::new();
    let cgroup = r"0::/machine.slice/machine-qemu\x2d9\x2ddb\x2d1.scope";
    proc.process(100, 5_000, b"vmm", &line, cgroup.as_bytes());
    let found = proc.found(100).identity;
    assert_eq!(found.name.as_deref(), Some("db-1"));
    let problem = "its command line says web-3, its cgroup db-1";
    assert_eq!(found.name_problem.as_deref(), Some(problem));

    let (line, _) = fixture("proxmox");
    proc.process(101, 5_000, b"kvm", &line, b"0::/qemu.slice/102.scope");
    let found = proc.found(101).identity;
    assert_eq!((found.id.as_deref(), found.name), (Some("102"), None));
    assert_eq!(
        found.name_problem.as_deref(),
        Some("its command line says 101, its cgroup 102")
    );

    // A command line that is gone (or was overwritten) leaves the cgroup's name to a libvirt VM whose program is known, and
    // nothing to anybody else.
    proc.process(102, 5_000, b"x", b"\0\0\0", cgroup.as_bytes());
    assert_eq!(proc.found(102).identity.kind, VmKind::Other);
    assert_eq!(proc.found(102).called(), "db-1");
}

#[test]
fn a_reused_number_is_another_process() {
    let proc = Proc::new();
    let (web, web_group) = fixture("libvirt");
    proc.process(100, 5_000, b"vmm", &web, &web_group);
    let first = proc.found(100);
    let (debian, debian_group) = fixture("qemu");
    proc.process(100, 9_000, b"vmm", &debian, &debian_group);
    let second = proc.found(100);
    assert_eq!((first.process, second.process), (100, 100));
    assert_ne!(first.start_ticks, second.start_ticks);
    assert_eq!(
        (first.called(), second.called()),
        ("web-3".into(), "debian".into())
    );
    proc.end(100);
    assert_ne!(look(proc.path(), 100), Look::Found(second));
}

#[test]
fn without_a_name_the_program_and_the_process_are() {
    let proc = Proc::new();
    let (line, cgroup) = fixture("firecracker-without-id");
    proc.process(4_321, 5_000, b"firecracker", &line, &cgroup);
    assert_eq!(proc.found(4_321).called(), "firecracker (4321)");
}

/// Names that try to be something else.
fn hostile() -> Vec<Vec<u8>> {
    vec![
        b"web\n[  0.1] root: ok".to_vec(),
        b"\x1b[2J\x1b]0;owned\x07web".to_vec(),
        b"\x9b31m\r\x08\x7f".to_vec(),
        b"\xff\xfe\xc3(".to_vec(),
        "a".repeat(10_240).into_bytes(),
        "\u{202e}gnp.exe\u{200b}\u{2028}\u{feff}"
            .as_bytes()
            .to_vec(),
        b"<script>alert(1)</script>&\"'".to_vec(),
        b"=2+3,process=evil".to_vec(),
        b"../../etc/passwd".to_vec(),
    ]
}

fn is_safe(text: &str, length_max: usize) -> bool {
    text.chars().count() <= length_max
        && !text.chars().any(|character| {
            character.is_control() || ('\u{2028}'..='\u{202e}').contains(&character)
        })
}

#[test]
fn hostile_names_are_printable_and_short() {
    let proc = Proc::new();
    for (place, name) in hostile().into_iter().enumerate() {
        let number = 200 + place as u32;
        let mut line = b"/usr/bin/qemu-system-x86_64\0-name\0guest=".to_vec();
        line.extend(name.iter().copied().filter(|byte| *byte != 0));
        line.extend(b"\0-uuid\0\x1b[31m\0");
        proc.process(
            number,
            1,
            &name,
            &line,
            &[b"0::/machine.slice/".as_slice(), &name].concat(),
        );
        let Look::Found(found) = look(proc.path(), number) else {
            // The kernel shows at most 15 bytes of a task's name; what cannot be read has no name.
            continue;
        };
        let called = found.called();
        assert!(is_safe(&called, 2 * NAME_LENGTH_MAX), "{called:?}");
        assert!(is_safe(&found.comm, NAME_LENGTH_MAX), "{:?}", found.comm);
        let name = found.identity.name.unwrap_or_default();
        assert!(
            is_safe(&name, NAME_LENGTH_MAX) && !name.is_empty(),
            "{name:?}"
        );
        assert_eq!(found.identity.uuid, None);
    }
    // Escaped bytes of a scope are no way round.
    let scope = br"0::/machine.slice/machine-qemu\x2d3\x2d\x1b\x5b2J\xff\x0aweb.scope";
    proc.process(300, 1, b"qemu", b"qemu-system-x86_64\0", scope);
    let found = proc.found(300);
    assert_eq!(found.called(), "?[2J\u{fffd}?web");
}

#[test]
fn every_hostile_fixture_was_looked_at() {
    // `continue` above must not make the test empty.
    let proc = Proc::new();
    let found = hostile().into_iter().filter(|name| {
        proc.process(7, 1, name, b"qemu-system-x86_64\0-name\0x\0", b"");
        matches!(look(proc.path(), 7), Look::Found(_))
    });
    assert!(found.count() >= 8);
}
