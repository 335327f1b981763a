// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command needs beside itself to run in the testbed: how KVM is loaded there, Linux guests and their programs, the
//! module that sets windows, rivals, and a user's own policies ([`prepare`]), compiled out here.

mod user_policies;

use std::path::Path;

use unspin_linux_guest::Programs;
use unspin_policy::{AppleRule, Vendor, steering::WindowPolicy};
use unspin_scenario::{Host, Scenario};
use unspin_testbed::{Input, Machine, Options};
use unspin_vmm::PauseLoop;

pub use user_policies::{Prepared, prepare};

use crate::{
    Error,
    rival::{self, Rival},
};

/// What a command says of the host below its VMs.
#[derive(Debug, Default)]
pub struct Needs {
    /// The scenario whose `[host]` says how KVM is loaded, and whose seed is the machine's.
    pub scenario: Option<Scenario>,
    /// The Linux guests that it runs.
    pub linux: Option<LinuxGuests>,
    /// Who sets pause-loop windows there.
    pub windows: Vec<WindowPolicy>,
    /// The other schedulers that it runs.
    pub rivals: Vec<Rival>,
}

/// What the testbed has to hold for Linux guests.
#[derive(Debug)]
pub struct LinuxGuests {
    /// The names of the programs that they and their host run.
    pub programs: Vec<&'static str>,
    /// Whether a guest runs our kernel.
    pub our_kernel: bool,
    /// The most VMs at once.
    pub vms: u32,
    /// Memory of each VM, MiB.
    pub memory_mib: u32,
    /// Their host's pause-loop window.
    pub host: Host,
}

impl Needs {
    /// Adds the files, KVM's parameters and the seed to the testbed's options. A scenario's `[host]` goes before that of Linux
    /// guests, which goes before what the window policies want.
    ///
    /// # Errors
    /// [`Error::Usage`] when the testbed has too little memory for the guests, or the module for windows or a rival is not built; files of
    /// the cache that are missing.
    pub fn add_to(self, options: &mut Options) -> Result<(), Error> {
        if let Some(linux) = &self.linux {
            // Before anything is looked for.
            check_memory(options.memory_mib, linux, 0)?;
            let machine = Machine::for_options(options)?;
            let programs = Programs::find(false, &options.cache)?;
            let inputs = programs.inputs(&machine, &linux.programs, linux.our_kernel)?;
            let sizes = inputs.iter().map(|input| input.host.metadata());
            let bytes = sizes.flatten().map(|metadata| metadata.len()).sum::<u64>();
            check_memory(options.memory_mib, linux, bytes >> 20)?;
            options.inputs.extend(inputs);
        }
        if !self.windows.is_empty() {
            let machine = Machine::for_options(options)?;
            options
                .inputs
                .push(ple_module(&options.cache, &machine.kernel_version)?);
        }
        let brought = rival::inputs(&self.rivals, options)?;
        options.inputs.extend(brought);
        if let Some(scenario) = &self.scenario {
            options.seed = scenario.seed;
        }
        let host = self.scenario.map(|scenario| scenario.host);
        let module = options.vendor.kvm_module();
        let parameters = host
            .or(self.linux.map(|linux| linux.host))
            .and_then(|host| PauseLoop::module_parameters(module, &host))
            .or_else(|| kvm_for(options.vendor, &self.windows));
        if let Some(parameters) = parameters {
            options.module_parameters.insert(module.into(), parameters);
        }
        Ok(())
    }
}

/// What the testbed needs beside its guests: kernel and programs take 400 MiB (the initramfs stands in memory twice
/// while it is unpacked), and each QEMU some 50 beside its guest's memory. Files for the guests above [`FILES_MIB`] stand in it
/// twice, too, and once more as the guests' own initramfs.
fn check_memory(memory_mib: u32, linux: &LinuxGuests, files_mib: u64) -> Result<(), Error> {
    let files = 3 * files_mib.saturating_sub(FILES_MIB);
    let needed = 512 + files + u64::from(linux.vms) * (u64::from(linux.memory_mib) + 50);
    if needed <= u64::from(memory_mib) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} guests of {} MiB need a testbed with --memory-mib {needed}; it has {memory_mib}",
        linux.vms, linux.memory_mib
    )))
}

/// QEMU with its firmware and libraries, the guests' kernel, a shell, and perf, the largest load of `make setup`: 133 MiB.
const FILES_MIB: u64 = 140;

/// What sets windows, where `unspin steer` looks for it.
fn ple_module(cache: &Path, kernel: &str) -> Result<Input, Error> {
    let host = cache.join("kmod").join(kernel).join("unspin_ple.ko");
    if !host.is_file() {
        return Err(Error::Usage(format!(
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
fn kvm_for(vendor: unspin_testbed::Vendor, windows: &[WindowPolicy]) -> Option<String> {
    let of_rules = match vendor {
        unspin_testbed::Vendor::Amd => Vendor::Amd,
        unspin_testbed::Vendor::Intel => Vendor::Intel,
    };
    let lowest = windows.iter().filter_map(|window| match window {
        WindowPolicy::Fixed(window) => Some(*window),
        WindowPolicy::Apple(Some(numbers)) => Some(numbers.lower),
        WindowPolicy::Apple(None) => Some(AppleRule::new(of_rules).lower()),
        WindowPolicy::Kvm => None,
    });
    let host = Host {
        ple_window: lowest.min(),
        ple_window_fixed: true,
        ..Host::default()
    };
    (!windows.is_empty())
        .then(|| PauseLoop::module_parameters(vendor.kvm_module(), &host))
        .flatten()
}

#[cfg(test)]
mod tests {
    use unspin_agent::PolicyChoice;

    use super::*;

    #[test]
    fn a_policy_for_windows_brings_its_module_and_a_kvm_that_leaves_them_alone() {
        let windows = |policies: &str| -> Vec<WindowPolicy> {
            let policies = policies.split_whitespace();
            policies
                .filter_map(|policy| policy.parse::<PolicyChoice>().expect("a policy").window())
                .collect()
        };
        let fixed = "pause_filter_count_grow=1 pause_filter_count_shrink=1";
        for (policies, count) in [
            ("window=200", "pause_filter_count=200 "),
            ("loan,apple", "pause_filter_count=3000 "),
            ("apple=8/64/64/512", "pause_filter_count=64 "),
            ("window=kvm", ""),
            ("apple loan window=500,loan", "pause_filter_count=500 "),
        ] {
            let parameters = kvm_for(unspin_testbed::Vendor::Amd, &windows(policies));
            assert_eq!(parameters, Some(format!("{count}{fixed}")), "{policies}");
        }
        let intel = |policies| kvm_for(unspin_testbed::Vendor::Intel, &windows(policies));
        assert_eq!(intel("loan"), None);
        let fixed = "ple_window_grow=1 ple_window_shrink=1";
        assert_eq!(intel("window=kvm").as_deref(), Some(fixed));
        let lowest = intel("window=500,loan window=900");
        assert_eq!(lowest, Some(format!("ple_window=500 {fixed}")));
        let Err(Error::Usage(said)) = ple_module(Path::new("/no"), "7.2") else {
            panic!("it is there")
        };
        assert!(said.contains("/no/kmod/7.2/unspin_ple.ko") && said.contains("make ple-module"));
    }

    #[test]
    fn guests_need_memory() {
        let linux = LinuxGuests {
            programs: Vec::new(),
            our_kernel: false,
            vms: 2,
            memory_mib: 256,
            host: Host {
                cpus: None,
                ple_window: None,
                ple_gap: None,
                ple_window_fixed: false,
            },
        };
        check_memory(2048, &linux, FILES_MIB).expect("it fits");
        check_memory(2048, &linux, 700).expect_err("its programs do not");
        let refused = check_memory(1000, &linux, 0).expect_err("too small");
        assert!(matches!(refused, Error::Usage(text) if text.contains("--memory-mib 1124")));
    }
}
