// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--vm VM` and `--vm VM=POLICY`.

use std::str::FromStr;

use unspin_policy::steering::{Policies, WindowPolicy};
use unspin_vms::{NoSuchVm, VmName};

use crate::{is_policy_file, with_user_policy};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmChoice {
    /// The VM.
    pub vm: VmName,
    /// Policies in words; `None`: `--policy`, which then touches named VMs only.
    pub policy: Option<String>,
}

impl FromStr for VmChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<VmChoice, String> {
        let (vm, policy) = match text.split_once('=') {
            Some((vm, policy)) => (vm, Some(policy)),
            None => (text, None),
        };
        let vm = vm
            .parse()
            .map_err(|says| format!("{says}; as in web-3, 1234 or web-3=loan-cpl"))?;
        for word in policy.into_iter().flat_map(|policy| policy.split(',')) {
            if WindowPolicy::is_one(word) {
                return Err(format!(
                    "`{word}` is a policy for pause-loop windows: those are set by --policy, for all or for VMs named by --vm VM"
                ));
            }
            if word == unspin_policy::auto::AUTO {
                return Err(format!(
                    "`{word}` chooses for all VMs, or for those named by --vm VM alone: say --policy {word}"
                ));
            }
            if is_policy_file(word) {
                return Err(format!(
                    "`{word}`: a policy's file is loaded by --policy; here say the policy's name"
                ));
            }
        }
        Ok(VmChoice {
            vm,
            policy: policy.map(str::to_owned),
        })
    }
}

/// One of them, found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenVm {
    /// The VMM's process.
    pub process: u32,
    /// As above.
    pub policy: Option<String>,
}

/// The running VMs that are meant.
///
/// # Errors
/// When one is not there, or several may be meant by one name.
pub fn running(vms: &[VmChoice]) -> Result<Vec<ChosenVm>, NoSuchVm> {
    let found = vms.iter().map(|choice| {
        Ok(ChosenVm {
            process: choice.vm.process()?,
            policy: choice.policy.clone(),
        })
    });
    found.collect()
}

/// The processes that policies touch alone; empty: everyone.
pub fn touched(vms: &[ChosenVm]) -> Vec<u32> {
    let alone = vms.iter().filter(|vm| vm.policy.is_none());
    alone.map(|vm| vm.process).collect()
}

/// VMs with policies of their own; `user_policy`: the name of the user policy that is loaded.
///
/// # Errors
/// When there is no such policy, or a VM has two.
pub fn policies_of(
    vms: &[ChosenVm],
    user_policy: Option<&str>,
) -> Result<Vec<(u32, Policies)>, String> {
    let mut found: Vec<(u32, Policies)> = Vec::new();
    for vm in vms {
        let Some(text) = &vm.policy else { continue };
        let process = vm.process;
        if found.iter().any(|(other, _)| *other == process) {
            return Err(format!("--vm {process}: two policies for one VM"));
        }
        let policies = with_user_policy(text, user_policy);
        found.push((
            process,
            policies.map_err(|says| format!("--vm {process}: {says}"))?,
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if every process were there.
    fn choices(texts: &[&str]) -> Vec<ChosenVm> {
        let parsed = texts.iter().map(|text| text.parse());
        let parsed: Vec<VmChoice> = parsed.collect::<Result<_, _>>().expect("choices");
        let found = parsed.into_iter().map(|choice| ChosenVm {
            process: choice.vm.text().parse().expect("a number"),
            policy: choice.policy,
        });
        found.collect()
    }

    #[test]
    fn what_does_not_run_is_refused() {
        let own = format!("{}=loan", std::process::id());
        let vms = [own.parse().expect("a choice")];
        let found = running(&vms).expect("it is there");
        assert_eq!(found[0].policy.as_deref(), Some("loan"));
        let vms = ["no such VM=loan".parse().expect("a choice")];
        let says = running(&vms).expect_err("there is none").to_string();
        assert!(says.contains("`no such VM`"), "{says}");
    }

    #[test]
    fn a_vm_is_named_with_or_without_a_policy() {
        let vms = choices(&["7", "8=loan,kernel-exit", "9=mine,slice=1ms"]);
        assert_eq!(touched(&vms), [7]);
        let policies = policies_of(&vms, Some("mine")).expect("policies");
        assert_eq!(
            policies
                .iter()
                .map(|(vm, policies)| format!("{vm} {policies}"))
                .collect::<Vec<_>>(),
            ["8 loan,kernel-exit", "9 user-policy,slice=1ms"]
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_reason() {
        for (wrong, says) in [
            ("", "a VM's name, UUID or process; as in"),
            ("=loan", "a VM's name, UUID or process; as in"),
            ("7=window=200", "pause-loop windows"),
            ("7=loan,apple", "pause-loop windows"),
            ("7=./mine.c", "say the policy's name"),
            ("7=auto", "say --policy auto"),
        ] {
            let error = wrong.parse::<VmChoice>().expect_err(wrong);
            assert!(error.contains(says), "{error}");
        }
        for (wrong, says) in [
            (&["7=lone"][..], "--vm 7: there is no policy `lone`"),
            (&["7="][..], "--vm 7:"),
            (&["7=loan", "7=helping"][..], "two policies for one VM"),
        ] {
            let error = policies_of(&choices(wrong), None).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
    }
}
