// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules between options of `unspin steer`, wherever each comes from: the command line or the file.

use unspin_agent::PolicyChoice;

use crate::model::Config;
use unspin_strict_toml::Breach;

/// What the rules are about.
pub struct SteerRules<'a> {
    /// What decides.
    pub policy: &'a PolicyChoice,
    /// Whether nothing is attached.
    pub dry_run: bool,
    /// Whether only VMs are scheduled.
    pub only_vms: bool,
    /// Whether cgroups are named.
    pub cgroups: bool,
}

/// A rule that is broken: the key of `[steer]` that is to be changed, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// As in `only_vms`.
    pub key: &'static str,
    /// A sentence.
    pub says: String,
}

/// The first rule that is broken.
///
/// # Errors
/// When there is one.
pub fn steer(of: &SteerRules<'_>) -> Result<(), Broken> {
    let broken = |key| move |says: String| Broken { key, says };
    let policy = of.policy;
    policy
        .without_tune("`unspin steer`")
        .map_err(broken("policy"))?;
    if of.dry_run {
        let without = policy.without_window("a dry run");
        let without = without.and_then(|()| policy.without_auto("a dry run"));
        without.map_err(broken("policy"))?;
    }
    let wrong = |key, says: &str| Err(broken(key)(says.to_owned()));
    if of.dry_run && of.only_vms {
        return wrong(
            "only_vms",
            "`only_vms` and `dry_run` exclude each other: a dry run schedules nothing",
        );
    }
    if policy.window().is_some() && of.cgroups {
        return wrong(
            "cgroup",
            "pause-loop windows are set for --vm VM or for everyone, not by --cgroup",
        );
    }
    if policy.is_auto() && of.cgroups {
        return wrong(
            "cgroup",
            "the policy auto chooses for all VMs or for those of --vm VM, not by --cgroup",
        );
    }
    if of.only_vms && !policy.steers() {
        return Err(broken("only_vms")(format!(
            "--only-vms is for our scheduler, and the policy {policy} alone leaves the host's in place"
        )));
    }
    Ok(())
}

/// The same of a file by itself.
pub fn file(config: Config) -> Result<Config, Breach> {
    let of = &config.steer;
    let rules = SteerRules {
        policy: &of.policy.value,
        dry_run: of.dry_run,
        only_vms: of.only_vms,
        cgroups: !of.cgroup.is_empty(),
    };
    match steer(&rules) {
        Ok(()) => Ok(config),
        Err(broken) => Err(Breach {
            path: format!("steer.{}", broken.key),
            message: broken.says,
            allowed: "options of one name mean the same here and on the command line".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(policy: &str, dry_run: bool, only_vms: bool, cgroups: bool) -> Option<&'static str> {
        let policy = policy.parse().expect("a policy");
        let rules = SteerRules {
            policy: &policy,
            dry_run,
            only_vms,
            cgroups,
        };
        steer(&rules).err().map(|broken| broken.key)
    }

    #[test]
    fn each_rule_names_its_key() {
        assert_eq!(broken("auto", false, true, false), None);
        assert_eq!(broken("loan", true, false, true), None);
        assert_eq!(broken("tune", false, false, false), Some("policy"));
        assert_eq!(broken("auto", true, false, false), Some("policy"));
        assert_eq!(broken("apple", true, false, false), Some("policy"));
        assert_eq!(broken("loan", true, true, false), Some("only_vms"));
        assert_eq!(broken("apple", false, false, true), Some("cgroup"));
        assert_eq!(broken("auto", false, false, true), Some("cgroup"));
        assert_eq!(broken("apple", false, true, false), Some("only_vms"));
    }
}
