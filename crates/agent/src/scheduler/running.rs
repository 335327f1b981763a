// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler that another process has attached: its maps, and changing what decides in it.

use unspin_abi as abi;
use unspin_policy::{auto::AUTO, steering::Policies};

use super::{
    ChosenBy, SteerError, VmPolicies, choice, decided::Decided, requirements, user_policy,
};
use crate::kernel::{bytes::text, load};

/// Why that is not changed.
#[derive(Debug, thiserror::Error)]
pub enum PolicySetError {
    /// There are no such policies, or not while the scheduler runs.
    #[error("{0}")]
    Words(String),
    /// Nothing runs, or the kernel refuses.
    #[error(transparent)]
    Steer(#[from] SteerError),
}

/// Changes what decides in the scheduler that another process has attached, for VMs that have no policies of their own, from the
/// next slice of each vCPU on.
///
/// # Errors
/// [`SteerError::NotRunning`], or when the kernel refuses to write the map.
pub fn set_running_policies(policies: Policies) -> Result<(), SteerError> {
    decided()?.set_everyone(policies)
}

/// The same for the VM of that process alone.
///
/// # Errors
/// As above, or when there is no such process.
pub fn set_running_vm(process: u32, policies: Policies) -> Result<(), SteerError> {
    decided()?.set_vm(process, policies, ChosenBy::Set)
}

/// That VM has everyone's policies again; false: it had none of its own.
///
/// # Errors
/// As [`set_running_policies`].
pub fn reset_running_vm(process: u32) -> Result<bool, SteerError> {
    decided()?.reset_vm(process)
}

/// Which policies act upon whom in the scheduler that another process has attached.
///
/// # Errors
/// As [`set_running_policies`].
pub fn running_policies() -> Result<Vec<VmPolicies>, SteerError> {
    decided()?.all()
}

fn decided() -> Result<Decided, SteerError> {
    Decided::of_running().ok_or(SteerError::NotRunning)
}

/// Policies in words, apart by commas, for a scheduler that runs: names of built-in ones, and of the user's own that it has.
///
/// # Errors
/// When there is no such policy, or nothing runs.
pub fn to_set_running(text: &str) -> Result<Policies, PolicySetError> {
    if text.split(',').any(choice::is_file) {
        let says = "a policy's file is loaded when `unspin steer` starts; while it runs, say the policy's name";
        return Err(PolicySetError::Words(says.into()));
    }
    if text.split(',').any(|word| word == AUTO) {
        let says = "auto chooses from when `unspin steer --policy auto` starts: name policies here";
        return Err(PolicySetError::Words(says.into()));
    }
    if let Ok(policies) = text.parse() {
        return Ok(policies);
    }
    let own = running_user_policy()?;
    with_user_policy(text, own.as_deref()).map_err(PolicySetError::Words)
}

/// The name of the policy of a user's own in the scheduler that some process of ours has attached; `None`: it has none.
///
/// # Errors
/// When no scheduler of ours is attached, or its policy cannot be read.
fn running_user_policy() -> Result<Option<String>, SteerError> {
    decided()?;
    for map in requirements::running_maps(user_policy::ABOUT, size_of::<abi::unspin_user_policy>())
    {
        let about: abi::unspin_user_policy = load::value(&map, "user_policy", 0)?;
        if about.dry_run == 0 {
            return Ok(Some(text(&about.name)));
        }
    }
    Ok(None)
}

/// Policies in words for a scheduler that has that user policy loaded, if any: names of built-in ones, and of that one.
///
/// # Errors
/// When there is no such policy.
pub fn with_user_policy(text: &str, user_policy: Option<&str>) -> Result<Policies, String> {
    let (mine, others): (Vec<&str>, Vec<&str>) =
        text.split(',').partition(|word| Some(*word) == user_policy);
    match (mine.is_empty(), &others[..]) {
        (false, []) => Ok(Policies::REFUSE_YIELDS.with_user_policy()),
        (false, others) if !others.contains(&"refuse-yields") => {
            Ok(others.join(",").parse::<Policies>()?.with_user_policy())
        }
        _ => text.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_for_windows_is_not_set_while_it_runs() {
        assert!(to_set_running("apple").is_err());
        let file = to_set_running("./mine.c").expect_err("it is loaded at the start");
        assert!(matches!(file, PolicySetError::Words(_)));
        let auto = to_set_running("auto").expect_err("it chooses from the start");
        assert!(auto.to_string().contains("--policy auto"), "{auto}");
    }

    #[test]
    fn a_running_policy_is_set_by_its_name() {
        let loan: Policies = "loan".parse().expect("a policy");
        let set = |text| with_user_policy(text, Some("mine"));
        assert_eq!(set("mine"), Ok(Policies::REFUSE_YIELDS.with_user_policy()));
        assert_eq!(set("loan,mine"), Ok(loan.with_user_policy()));
        for wrong in ["refuse-yields,mine", "mine,other", "other", "user-policy"] {
            assert!(set(wrong).is_err(), "{wrong}");
        }
        assert!(with_user_policy("mine", None).is_err());
    }
}
