// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts without names: for a page that goes to somebody else.

use std::collections::BTreeMap;

use unspin_events::{facts::Facts, vm_identity::VmIdentity};

/// Puts `vm-1`, `vm-2` (by number in the recording) in place of names and ids of VMs, and `task-1` (by first appearance) in place of
/// names of tasks; one name has one pseudonym. The machine, its kernel, times and process numbers stay.
pub fn redact(facts: &mut Facts) {
    for vm in &mut facts.vms {
        vm.identity = VmIdentity {
            kind: vm.identity.kind,
            name: Some(format!("vm-{}", u64::from(vm.vm) + 1)),
            ..VmIdentity::default()
        };
        vm.comm = None;
    }
    let mut pseudonyms: BTreeMap<String, String> = BTreeMap::new();
    for task in &mut facts.tasks {
        let next = format!("task-{}", pseudonyms.len() + 1);
        let pseudonym = pseudonyms
            .entry(std::mem::take(&mut task.comm))
            .or_insert(next);
        task.comm.clone_from(pseudonym);
    }
    facts.scenario = None;
}

#[cfg(test)]
mod tests {
    use unspin_events::facts::{TaskFacts, VmFacts};

    use super::*;

    #[test]
    fn no_name_stays_and_one_name_has_one_pseudonym() {
        let vm = |vm, name: &str| VmFacts {
            vm,
            comm: Some("secret-vmm".into()),
            identity: VmIdentity {
                name: Some(name.into()),
                uuid: Some("secret-uuid".into()),
                id: Some("secret-id".into()),
                namespace: Some("secret-space".into()),
                pod_uid: Some("secret-pod".into()),
                name_problem: Some("secret-problem".into()),
                ..VmIdentity::default()
            },
            ..VmFacts::default()
        };
        let task = |thread, comm: &str| TaskFacts {
            thread,
            comm: comm.into(),
            ..TaskFacts::default()
        };
        let mut facts = Facts {
            vms: vec![vm(0, "secret-a"), vm(7, "secret-b")],
            tasks: vec![
                task(1, "secret-x"),
                task(2, "secret-y"),
                task(3, "secret-x"),
            ],
            ..Facts::default()
        };
        redact(&mut facts);
        assert!(!format!("{facts:?}").contains("secret"), "{facts:?}");
        assert_eq!(
            (facts.vm_name(0), facts.vm_name(7)),
            ("vm-1".into(), "vm-8".into())
        );
        let comms: Vec<_> = facts.tasks.iter().map(|task| task.comm.as_str()).collect();
        assert_eq!(comms, ["task-1", "task-2", "task-1"]);
    }
}
