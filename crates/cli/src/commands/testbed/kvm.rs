// SPDX-License-Identifier: MIT OR Apache-2.0
//! How KVM is loaded in the testbed: with the pause-loop window of the scenario, or of the policy that sets it.

use std::{ffi::OsString, path::Path};

use clap::Parser;
use unspin_agent::PolicyChoice;
use unspin_policy::{AppleRule, Vendor, steering::WindowPolicy};
use unspin_testbed::Input;

use crate::{
    commands::{Arguments, Command},
    terminal::failure::Failure,
};

/// Who sets pause-loop windows, when the command is `unspin steer`, records it, or compares.
pub fn windows_of(command: &[OsString]) -> Vec<WindowPolicy> {
    if command.first().is_none_or(|name| name != "unspin") {
        return Vec::new();
    }
    match Arguments::parse_from(command).command {
        // Thresholds in their place need no module, nor a KVM that leaves windows alone.
        Command::Steer(arguments) if arguments.sets_thresholds() => Vec::new(),
        Command::Steer(arguments) => arguments.policy.window().into_iter().collect(),
        Command::Compare(arguments) => {
            let windows = arguments.policies.iter().map(PolicyChoice::window);
            windows.flatten().collect()
        }
        Command::Record(arguments) => windows_of(&arguments.command),
        _ => Vec::new(),
    }
}

/// What sets windows, where `unspin steer` looks for it.
pub fn ple_module(cache: &Path, kernel: &str) -> Result<Input, Failure> {
    let host = cache.join("kmod").join(kernel).join("unspin_ple.ko");
    if !host.is_file() {
        return Err(Failure::Usage(format!(
            "windows are set by a kernel module, and {} is missing: `make ple-module` builds it",
            host.display()
        )));
    }
    Ok(Input {
        host,
        guest: format!("/lib/modules/{kernel}/extra/unspin_ple.ko").into(),
        executable: false,
    })
}

/// A KVM that leaves windows alone and begins with the policies' lowest; of a scenario that says nothing of windows. `None`:
/// no policy sets any.
pub fn kvm_amd_for(windows: &[WindowPolicy]) -> Option<String> {
    let lowest = windows.iter().filter_map(|window| match window {
        WindowPolicy::Fixed(window) => Some(*window),
        WindowPolicy::Apple(Some(numbers)) => Some(numbers.lower),
        WindowPolicy::Apple(None) => Some(AppleRule::new(Vendor::Amd).lower()),
        WindowPolicy::Kvm => None,
    });
    let count = lowest.min().map_or(String::new(), |lowest| {
        format!("pause_filter_count={lowest} ")
    });
    (!windows.is_empty())
        .then(|| format!("{count}pause_filter_count_grow=1 pause_filter_count_shrink=1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_for_windows_brings_its_module_and_a_kvm_that_leaves_them_alone() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(Into::into).collect() };
        let window = |line| kvm_amd_for(&windows_of(&words(line)));
        let fixed = "pause_filter_count_grow=1 pause_filter_count_shrink=1";
        for (line, count) in [
            (
                "unspin steer --policy window=200",
                "pause_filter_count=200 ",
            ),
            (
                "unspin steer --policy loan,apple",
                "pause_filter_count=3000 ",
            ),
            (
                "unspin record /out/r -- unspin steer --policy apple=8/64/64/512",
                "pause_filter_count=64 ",
            ),
            ("unspin steer --policy window=kvm", ""),
            (
                "unspin compare s.toml --policy apple --policy loan --policy window=500,loan",
                "pause_filter_count=500 ",
            ),
        ] {
            assert_eq!(window(line), Some(format!("{count}{fixed}")), "{line}");
        }
        for none in [
            "unspin steer --policy loan",
            "unspin compare s.toml --policy loan",
        ] {
            assert_eq!(window(none), None);
        }
        let Err(Failure::Usage(said)) = ple_module(Path::new("/no"), "7.2") else {
            panic!("it is there")
        };
        assert!(said.contains("/no/kmod/7.2/unspin_ple.ko") && said.contains("make ple-module"));
    }
}
