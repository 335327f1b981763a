// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who a VM is, from what its process's command line and cgroup say.

use unspin_events::vm_identity::{NAME_LENGTH_MAX, VmIdentity, VmKind, printable};

use crate::{
    cgroup::{CgroupPlace, is_machine_of},
    command_line::CommandLine,
};

/// Longest id that is kept, characters: a path of a Unix socket has at most 107.
const ID_LENGTH_MAX: usize = 107;

/// Joins both. Where they differ the cgroup is right, in which the host has put the process, and `name_problem` says so.
pub(crate) fn join(line: CommandLine, place: CgroupPlace) -> VmIdentity {
    let mut known = VmIdentity {
        kind: kind(&line, &place),
        name: line.name,
        uuid: line.uuid,
        id: line.id,
        pod_uid: place.pod_uid,
        ..VmIdentity::default()
    };
    if let Some(machine) = place.machine {
        by_machine(&mut known, machine);
    }
    if known.kind == VmKind::Proxmox {
        by_number(&mut known, place.proxmox_id);
    }
    if known.kind == VmKind::Firecracker {
        known.id = known.id.or(place.firecracker_id);
    }
    if known.kind == VmKind::Kubevirt {
        // Namespaces hold no `_` (RFC 1123 labels); KubeVirt joins both by one (DomainFromNamespaceName(), 1.6).
        let both = known.name.take();
        match both.as_deref().and_then(|both| both.split_once('_')) {
            Some((namespace, name)) => {
                known.namespace = Some(namespace.to_owned());
                known.name = Some(name.to_owned());
            }
            None => known.name = both,
        }
    }
    shown(known)
}

fn kind(line: &CommandLine, place: &CgroupPlace) -> VmKind {
    match line.kind {
        VmKind::Qemu | VmKind::Libvirt | VmKind::Nova if place.proxmox_id.is_some() => {
            VmKind::Proxmox
        }
        VmKind::Libvirt | VmKind::Nova if place.pod_uid.is_some() => VmKind::Kubevirt,
        VmKind::Qemu if place.machine.is_some() => VmKind::Libvirt,
        kind => kind,
    }
}

fn by_machine(known: &mut VmIdentity, machine: String) {
    match known.name.as_deref() {
        Some(name) if is_machine_of(&machine, name) => {}
        Some(name) => {
            known.name_problem = Some(format!(
                "its command line says {name}, its cgroup {machine}"
            ));
            if known.kind == VmKind::Nova {
                known.id = Some(machine.clone());
            }
            known.name = Some(machine);
        }
        None => known.name = Some(machine),
    }
}

fn by_number(known: &mut VmIdentity, number: Option<String>) {
    let Some(number) = number else { return };
    if let Some(said) = known.id.take().filter(|said| *said != number) {
        known.name_problem = Some(format!("its command line says {said}, its cgroup {number}"));
        known.name = None;
    }
    known.id = Some(number);
}

/// Everything printable and bounded; what is empty is not known.
fn shown(known: VmIdentity) -> VmIdentity {
    let text = |text: Option<String>, length_max| {
        text.map(|text| printable(&text, length_max))
            .filter(|text| !text.is_empty())
    };
    VmIdentity {
        kind: known.kind,
        name: text(known.name, NAME_LENGTH_MAX),
        uuid: known.uuid,
        id: text(known.id, ID_LENGTH_MAX),
        namespace: text(known.namespace, NAME_LENGTH_MAX),
        pod_uid: known.pod_uid,
        name_problem: text(known.name_problem, 3 * NAME_LENGTH_MAX),
    }
}
