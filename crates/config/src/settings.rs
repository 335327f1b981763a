// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin steer` does: what its command line says, else the configuration.

use std::path::{Path, PathBuf};

use unspin_agent::{DisclosureChoice, PolicyChoice, steer::vm_choice::VmChoice};

use crate::{
    model::SteerConfig,
    rules::{self, SteerRules},
};

/// What the command line says of options that both have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteerGiven {
    /// `--policy`
    pub policy: Option<PolicyChoice>,
    /// `--only-vms`
    pub only_vms: Option<bool>,
    /// `--dry-run`
    pub dry_run: Option<bool>,
    /// `--vm`
    pub vms: Vec<VmChoice>,
    /// `--cgroup`
    pub cgroups: Vec<PathBuf>,
    /// `--disclose`
    pub disclose: Vec<DisclosureChoice>,
    /// `--ple-module`
    pub ple_module: Option<PathBuf>,
    /// `--sections`
    pub sections: Option<PathBuf>,
}

/// What is in force of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteerSettings {
    /// [`SteerGiven::policy`].
    pub policy: PolicyChoice,
    /// [`SteerGiven::only_vms`].
    pub only_vms: bool,
    /// [`SteerGiven::dry_run`].
    pub dry_run: bool,
    /// [`SteerGiven::vms`].
    pub vms: Vec<VmChoice>,
    /// [`SteerGiven::cgroups`].
    pub cgroups: Vec<PathBuf>,
    /// [`SteerGiven::disclose`].
    pub disclose: Vec<DisclosureChoice>,
    /// [`SteerGiven::ple_module`].
    pub ple_module: Option<PathBuf>,
    /// [`SteerGiven::sections`].
    pub sections: Option<PathBuf>,
}

impl SteerSettings {
    /// See above. An option that may be repeated takes the place of all that the configuration has of it.
    ///
    /// # Errors
    /// What they say together cannot be.
    pub fn of(given: SteerGiven, config: &SteerConfig) -> Result<SteerSettings, String> {
        let looks_into_guests = given.sections.is_some();
        let module = config.ple_module.as_ref().map(|text| text.value.0.clone());
        let sections = config.sections.as_ref().map(|text| text.value.0.clone());
        let settings = SteerSettings {
            policy: given.policy.unwrap_or_else(|| config.policy.value.clone()),
            only_vms: given.only_vms.unwrap_or(config.only_vms),
            dry_run: given.dry_run.unwrap_or(config.dry_run),
            vms: either(given.vms, &config.vm, |text| text.value.clone()),
            cgroups: either(given.cgroups, &config.cgroup, |text| text.value.0.clone()),
            disclose: either(given.disclose, &config.disclose, |text| text.value.clone()),
            ple_module: given.ple_module.or(module),
            sections: given.sections.or(sections),
        };
        let rules = SteerRules {
            policy: &settings.policy,
            dry_run: settings.dry_run,
            only_vms: settings.only_vms,
            cgroups: !settings.cgroups.is_empty(),
        };
        rules::steer(&rules).map_err(|broken| broken.says)?;
        if settings.dry_run && looks_into_guests {
            return Err("--sections: a dry run does not look into guests' code".to_owned());
        }
        Ok(settings)
    }

    /// Whether guests' thresholds are to be set in place of windows, wherever the module is.
    pub fn sets_thresholds(&self) -> bool {
        self.ple_module.as_deref() == Some(Path::new("none"))
    }
}

fn either<T, C>(given: Vec<T>, config: &[C], value: impl Fn(&C) -> T) -> Vec<T> {
    match given.is_empty() {
        true => config.iter().map(value).collect(),
        false => given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: SteerGiven, config: &str) -> Result<SteerSettings, String> {
        let config: SteerConfig = toml::from_str(config).expect("a configuration");
        SteerSettings::of(given, &config)
    }

    fn policy(words: &str) -> SteerGiven {
        SteerGiven {
            policy: Some(words.parse().expect("a policy")),
            ..SteerGiven::default()
        }
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let config =
            "policy = 'loan'\nonly_vms = true\nvm = ['a', 'b=loan']\nple_module = 'none'\n";
        let of = settings(SteerGiven::default(), config).expect("settings");
        assert_eq!(of.policy.to_string(), "loan");
        assert_eq!((of.only_vms, of.vms.len()), (true, 2));
        assert!(of.sets_thresholds());
        let vms = vec!["c".parse().expect("a VM")];
        let given = SteerGiven {
            only_vms: Some(false),
            vms: vms.clone(),
            ..policy("auto")
        };
        let of = settings(given, config).expect("settings");
        assert!(of.policy.is_auto() && !of.only_vms);
        assert_eq!(of.vms, vms);
        let given = SteerGiven {
            only_vms: Some(true),
            vms,
            ..SteerGiven::default()
        };
        let of = settings(given, "").expect("settings");
        assert!(of.policy.is_auto() && of.only_vms);
    }

    #[test]
    fn what_they_say_together_cannot_be() {
        let dry = SteerGiven {
            dry_run: Some(true),
            ..policy("loan")
        };
        let says = settings(dry.clone(), "only_vms = true").expect_err("refused");
        assert!(says.contains("exclude each other"), "{says}");
        let all = SteerGiven {
            only_vms: Some(false),
            ..dry.clone()
        };
        assert!(settings(all, "only_vms = true").is_ok());
        let says = settings(SteerGiven::default(), "cgroup = ['/a']").expect_err("refused");
        assert!(says.contains("not by --cgroup"), "{says}");
        let sections = Some("/map".into());
        let says = settings(SteerGiven { sections, ..dry }, "").expect_err("refused");
        assert!(says.starts_with("--sections: a dry run"), "{says}");
    }
}
