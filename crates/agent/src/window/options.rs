// SPDX-License-Identifier: MIT OR Apache-2.0
//! How to set windows, and what the programs are told of it.

use std::path::PathBuf;

use unspin_abi as abi;
use unspin_policy::{
    AppleRule, Control, SpinBound, Vendor as Hardware, WindowRule,
    steering::{AppleNumbers, WindowPolicy},
};

use super::{
    WindowError,
    host::KvmWindow,
    module::Vendor,
    module::{is_here, module_path},
};
use crate::{Disclosure, Disclosures};

/// Where the module that sets windows comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PleSource {
    /// [`module_path`]. Where there is none APPLE sets the guests' thresholds.
    #[default]
    Installed,
    /// That file.
    File(PathBuf),
    /// Nowhere: the guests' thresholds are set.
    Nowhere,
}

/// How to set windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// What decides.
    pub policy: WindowPolicy,
    /// Processes whose VMs it is for; none: everyone's.
    pub processes: Vec<u32>,
    /// The module.
    pub module: PleSource,
    /// Which guests may be told of a threshold: all but those that are told nothing. Looked up when a VM is seen first.
    pub disclosures: Disclosures,
}

impl WindowOptions {
    /// For everyone's VMs, as far as guests may be told something by default.
    pub fn new(policy: WindowPolicy) -> WindowOptions {
        WindowOptions {
            policy,
            processes: Vec::new(),
            module: PleSource::default(),
            disclosures: Disclosures::default(),
        }
    }

    /// What is set.
    pub(super) fn bound(&self) -> SpinBound {
        let falls_back = matches!(self.policy, WindowPolicy::Apple(_)) && !is_here();
        match self.module {
            PleSource::Nowhere => SpinBound::Threshold,
            PleSource::Installed if falls_back => SpinBound::Threshold,
            PleSource::Installed | PleSource::File(_) => SpinBound::Window,
        }
    }

    pub(super) fn module_file(&self) -> PathBuf {
        match &self.module {
            PleSource::File(file) => file.clone(),
            PleSource::Installed | PleSource::Nowhere => module_path(),
        }
    }

    /// On a host with that KVM.
    pub(super) fn for_windows(
        &self,
        kvm: &KvmWindow,
    ) -> Result<abi::unspin_window_options, WindowError> {
        let hardware = match kvm.vendor {
            Vendor::Amd => Hardware::Amd,
            Vendor::Intel => Hardware::Intel,
        };
        let numbers = self.numbers(hardware);
        let (control, base, highest) = match self.policy {
            WindowPolicy::Fixed(window) => (Control::Fixed, window, window),
            WindowPolicy::Kvm => (Control::Kvm, kvm.base, kvm.base),
            WindowPolicy::Apple(_) => (Control::Apple, numbers.lower, numbers.upper),
        };
        kvm.check(base, highest)?;
        Ok(self.settings(SpinBound::Window, control, base, hardware))
    }

    /// A spin has a PAUSE, and counts as much as one of AMD's (`policy/model/spin_threshold.h`).
    pub(super) fn for_thresholds(&self) -> Result<abi::unspin_window_options, WindowError> {
        let (control, base) = match self.policy {
            WindowPolicy::Fixed(spins) => (Control::Fixed, spins),
            WindowPolicy::Kvm => return Err(WindowError::NeedsTheModule),
            WindowPolicy::Apple(_) => (Control::Apple, self.numbers(Hardware::Amd).lower),
        };
        Ok(self.settings(SpinBound::Threshold, control, base, Hardware::Amd))
    }

    fn numbers(&self, hardware: Hardware) -> AppleNumbers {
        let apple = AppleRule::new(hardware);
        match self.policy {
            WindowPolicy::Apple(Some(numbers)) => numbers,
            _ => AppleNumbers {
                delta: apple.delta(),
                lower: apple.lower(),
                initial: apple.initial(),
                upper: apple.upper(),
            },
        }
    }

    fn settings(
        &self,
        bound: SpinBound,
        control: Control,
        base: u32,
        hardware: Hardware,
    ) -> abi::unspin_window_options {
        let numbers = self.numbers(hardware);
        let (grow, shrink, max) = WindowRule::new(control, hardware).with_base(base).steps();
        abi::unspin_window_options {
            control: control.raw(),
            base,
            grow,
            shrink,
            max,
            initial: numbers.initial,
            lower: numbers.lower,
            upper: numbers.upper,
            delta: numbers.delta,
            everyone: self.processes.is_empty().into(),
            bound: bound.raw(),
            notifies: notifies(self.disclosures.everyone),
            cycle_ps: 0,
        }
    }
}

/// Whether a guest that is told so much is told of a threshold.
pub(super) fn notifies(disclosure: Disclosure) -> u32 {
    (disclosure != Disclosure::Nothing).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_set_where_no_module_is_or_is_wanted() {
        // This machine has no unspin_ple: it is a kernel's, and no test loads it here.
        let options = |policy, module| WindowOptions {
            module,
            ..WindowOptions::new(policy)
        };
        let apple = WindowPolicy::Apple(None);
        let file = || PleSource::File("/no/unspin_ple.ko".into());
        if !is_here() {
            let bound = options(apple, PleSource::Installed).bound();
            assert_eq!(bound, SpinBound::Threshold);
        }
        assert_eq!(options(apple, file()).bound(), SpinBound::Window, "named");
        assert_eq!(
            options(apple, PleSource::Nowhere).bound(),
            SpinBound::Threshold
        );
        let fixed = WindowPolicy::Fixed(900);
        assert_eq!(
            options(fixed, PleSource::Installed).bound(),
            SpinBound::Window,
            "a fixed window is a window"
        );
        assert_eq!(
            options(fixed, PleSource::Nowhere).bound(),
            SpinBound::Threshold
        );
        let kvms = options(WindowPolicy::Kvm, PleSource::Nowhere);
        assert!(matches!(
            kvms.for_thresholds(),
            Err(WindowError::NeedsTheModule)
        ));
    }

    #[test]
    fn what_the_programs_are_told_of_thresholds() {
        let mut options = WindowOptions::new(WindowPolicy::Apple(None));
        let settings = options.for_thresholds().expect("a threshold");
        assert_eq!((settings.bound, settings.notifies), (1, 1));
        assert_eq!(
            (settings.lower, settings.initial, settings.upper),
            (3_000, 6_000, 24_000)
        );
        assert_eq!(settings.delta, 750);
        options.disclosures.everyone = Disclosure::Nothing;
        options.policy = WindowPolicy::Fixed(900);
        let settings = options.for_thresholds().expect("a threshold");
        assert_eq!((settings.base, settings.notifies), (900, 0));
        // Of single processes and cgroups (Disclosures::fill()) the same.
        assert_eq!(
            [Disclosure::Nothing, Disclosure::Own, Disclosure::All].map(notifies),
            [0, 1, 1]
        );
    }
}
