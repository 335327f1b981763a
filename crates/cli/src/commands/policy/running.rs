// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin policy set` takes.

use unspin_agent::{is_policy_file, running_user_policy};
use unspin_policy::steering::Policies;

use crate::terminal::failure::Failure;

/// The words of `unspin policy set`: names of built-in policies, and of the user's own that the running scheduler has.
///
/// # Errors
/// When there is no such policy, or nothing runs.
pub fn of_running(text: &str) -> Result<Policies, Failure> {
    if text.split(',').any(is_policy_file) {
        let says = "a policy's file is loaded when `unspin steer` starts; while it runs, say the policy's name";
        return Err(Failure::Usage(says.into()));
    }
    if let Ok(policies) = text.parse() {
        return Ok(policies);
    }
    let own = running_user_policy().map_err(anyhow::Error::from)?;
    with_user_policy(text, own.as_deref()).map_err(Failure::Usage)
}

fn with_user_policy(text: &str, user_policy: Option<&str>) -> Result<Policies, String> {
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
        let set = of_running("apple").expect_err("not while it runs");
        assert!(matches!(set, Failure::Usage(_) | Failure::Failed(_)));
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
