// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin steer` does: its command line, else the configuration.

use std::path::{Path, PathBuf};

use unspin_agent::{DisclosureChoice, PolicyChoice, steer::vm_choice::VmChoice};
use unspin_config::{
    SteerConfig,
    rules::{self, SteerRules},
};

use super::args::SteerArguments;
use crate::terminal::failure::Failure;

/// Options that both have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteerSettings {
    /// [`SteerArguments::policy`].
    pub policy: PolicyChoice,
    /// [`SteerArguments::only_vms`].
    pub only_vms: bool,
    /// [`SteerArguments::dry_run`].
    pub dry_run: bool,
    /// [`SteerArguments::vms`].
    pub vms: Vec<VmChoice>,
    /// [`SteerArguments::cgroups`].
    pub cgroups: Vec<PathBuf>,
    /// [`SteerArguments::disclose`].
    pub disclose: Vec<DisclosureChoice>,
    /// [`SteerArguments::ple_module`].
    pub ple_module: Option<PathBuf>,
    /// [`SteerArguments::sections`].
    pub sections: Option<PathBuf>,
}

impl SteerSettings {
    /// See above. An option that may be repeated takes the place of all that the configuration has of it.
    ///
    /// # Errors
    /// What they say together cannot be.
    pub fn of(arguments: &SteerArguments, config: &SteerConfig) -> Result<SteerSettings, Failure> {
        let policy = arguments.policy.clone();
        let module = config.ple_module.as_ref().map(|text| text.value.0.clone());
        let sections = config.sections.as_ref().map(|text| text.value.0.clone());
        let settings = SteerSettings {
            policy: policy.unwrap_or_else(|| config.policy.value.clone()),
            only_vms: arguments.only_vms.unwrap_or(config.only_vms),
            dry_run: arguments.dry_run.unwrap_or(config.dry_run),
            vms: either(&arguments.vms, &config.vm, |text| text.value.clone()),
            cgroups: either(&arguments.cgroups, &config.cgroup, |text| {
                text.value.0.clone()
            }),
            disclose: either(&arguments.disclose, &config.disclose, |text| {
                text.value.clone()
            }),
            ple_module: arguments.ple_module.clone().or(module),
            sections: arguments.sections.clone().or(sections),
        };
        let rules = SteerRules {
            policy: &settings.policy,
            dry_run: settings.dry_run,
            only_vms: settings.only_vms,
            cgroups: !settings.cgroups.is_empty(),
        };
        rules::steer(&rules).map_err(|broken| Failure::Usage(broken.says))?;
        if settings.dry_run && arguments.sections.is_some() {
            return Err(Failure::Usage(
                "--sections: a dry run does not look into guests' code".into(),
            ));
        }
        Ok(settings)
    }

    /// Whether guests' thresholds are to be set in place of windows, wherever the module is.
    pub fn sets_thresholds(&self) -> bool {
        self.ple_module.as_deref() == Some(Path::new("none"))
    }
}

fn either<T: Clone, C>(given: &[T], config: &[C], value: impl Fn(&C) -> T) -> Vec<T> {
    match given {
        [] => config.iter().map(value).collect(),
        given => given.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        steer: SteerArguments,
    }

    fn settings(line: &str, config: &str) -> Result<SteerSettings, String> {
        let config: SteerConfig = toml::from_str(config).expect("a configuration");
        let words = std::iter::once("steer").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        SteerSettings::of(&line.steer, &config).map_err(|failure| match failure {
            Failure::Usage(says) => says,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let config =
            "policy = 'loan'\nonly_vms = true\nvm = ['a', 'b=loan']\nple_module = 'none'\n";
        let of = settings("", config).expect("settings");
        assert_eq!(of.policy.to_string(), "loan");
        assert_eq!((of.only_vms, of.vms.len()), (true, 2));
        assert!(of.sets_thresholds());
        let of = settings("--policy auto --only-vms=false --vm c", config).expect("settings");
        assert!(of.policy.is_auto() && !of.only_vms);
        assert_eq!(of.vms, ["c".parse().expect("a VM")]);
        let of = settings("--only-vms --vm c", "").expect("settings");
        assert!(of.policy.is_auto() && of.only_vms);
    }

    #[test]
    fn what_they_say_together_cannot_be() {
        let says = settings("--dry-run --policy loan", "only_vms = true").expect_err("refused");
        assert!(says.contains("exclude each other"), "{says}");
        assert!(
            settings(
                "--dry-run --policy loan --only-vms=false",
                "only_vms = true"
            )
            .is_ok()
        );
        let says = settings("", "cgroup = ['/a']").expect_err("refused");
        assert!(says.contains("not by --cgroup"), "{says}");
        assert!(settings("--clear-latch --policy loan", "").is_err());
    }
}
