// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--vm PROCESS` and `--vm PROCESS=POLICY`.

use std::str::FromStr;

use unspin_agent::with_user_policy;
use unspin_policy::steering::{Policies, WindowPolicy};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmChoice {
    /// The VMM's process.
    pub process: u32,
    /// Policies in words; `None`: `--policy`, which then touches named VMs only.
    pub policy: Option<String>,
}

impl FromStr for VmChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<VmChoice, String> {
        let (process, policy) = match text.split_once('=') {
            Some((process, policy)) => (process, Some(policy)),
            None => (text, None),
        };
        let process = process
            .parse()
            .map_err(|_| format!("`{process}` is no process; as in 1234 or 1234=loan-cpl"))?;
        for word in policy.into_iter().flat_map(|policy| policy.split(',')) {
            if WindowPolicy::is_one(word) {
                return Err(format!(
                    "`{word}` is a policy for pause-loop windows: those are set by --policy, for all or for VMs named by --vm PROCESS"
                ));
            }
            if word == unspin_policy::auto::AUTO {
                return Err(format!(
                    "`{word}` chooses for all VMs, or for those named by --vm PROCESS alone: say --policy {word}"
                ));
            }
            if unspin_agent::is_policy_file(word) {
                return Err(format!(
                    "`{word}`: a policy's file is loaded by --policy; here say the policy's name"
                ));
            }
        }
        Ok(VmChoice {
            process,
            policy: policy.map(str::to_owned),
        })
    }
}

/// The processes that policies touch alone; empty: everyone.
pub fn touched(vms: &[VmChoice]) -> Vec<u32> {
    let alone = vms.iter().filter(|vm| vm.policy.is_none());
    alone.map(|vm| vm.process).collect()
}

/// VMs with policies of their own; `user_policy`: the name of the user policy that is loaded.
///
/// # Errors
/// When there is no such policy, or a VM has two.
pub fn policies_of(
    vms: &[VmChoice],
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

    fn choices(texts: &[&str]) -> Vec<VmChoice> {
        let parsed = texts.iter().map(|text| text.parse());
        parsed.collect::<Result<_, _>>().expect("choices")
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
            ("", "no process"),
            ("web-3=loan", "`web-3` is no process"),
            ("-1", "no process"),
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
