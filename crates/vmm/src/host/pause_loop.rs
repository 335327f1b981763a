// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pause-loop parameters of the loaded KVM module. They are read-only while it is loaded (mode 0444, docs/facts.md#parameters):
//! whoever loads the module sets them; a run checks that they are what its scenario says.
use std::path::Path;

use unspin_scenario::Host;

use crate::{Error, host::read_number};

/// What the module runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseLoop {
    /// `kvm_amd` or `kvm_intel`.
    pub module: &'static str,
    /// `pause_filter_count` (PAUSEs) or `ple_window` (TSC cycles); 0: no pause-loop exits.
    pub window: u32,
    /// `pause_filter_thresh` (cycles between PAUSEs) or `ple_gap`.
    pub gap: u32,
    /// By what KVM grows the window after an exit; 1: not at all.
    pub grow: u32,
    /// By what KVM shrinks it when the vCPU is scheduled in; 0: back to the start; 1: not at all.
    pub shrink: u32,
    /// To what it grows at most.
    pub window_max: u32,
}

struct Names {
    module: &'static str,
    window: &'static str,
    gap: &'static str,
    grow: &'static str,
    shrink: &'static str,
    window_max: &'static str,
}

/// arch/x86/kvm/svm/svm.c and vmx/vmx.c, Linux 7.2.
const MODULES: [Names; 2] = [
    Names {
        module: "kvm_amd",
        window: "pause_filter_count",
        gap: "pause_filter_thresh",
        grow: "pause_filter_count_grow",
        shrink: "pause_filter_count_shrink",
        window_max: "pause_filter_count_max",
    },
    Names {
        module: "kvm_intel",
        window: "ple_window",
        gap: "ple_gap",
        grow: "ple_window_grow",
        shrink: "ple_window_shrink",
        window_max: "ple_window_max",
    },
];

/// KVM's defaults when it may move the window (docs/facts.md#parameters).
const GROW_DEFAULT: u32 = 2;
const SHRINK_DEFAULT: u32 = 0;
/// Multiplying or dividing by it leaves the window alone (__grow_ple_window, arch/x86/kvm/x86.h).
const MOVE_NOTHING: u32 = 1;

impl PauseLoop {
    /// The parameters of the module that is loaded, from `/sys/module` (`modules`); `None` when neither is.
    pub fn in_force(modules: &Path) -> Option<PauseLoop> {
        MODULES.iter().find_map(|names| {
            let parameters = modules.join(names.module).join("parameters");
            let read = |name: &str| read_number(&parameters.join(name));
            Some(PauseLoop {
                module: names.module,
                window: read(names.window)?,
                gap: read(names.gap)?,
                grow: read(names.grow)?,
                shrink: read(names.shrink)?,
                window_max: read(names.window_max)?,
            })
        })
    }

    /// The parameters in force on this host, which must be those that the scenario states.
    ///
    /// # Errors
    /// As [`PauseLoop::check`].
    pub fn of_this_host(wanted: &Host) -> Result<Option<PauseLoop>, Error> {
        let in_force = PauseLoop::in_force(Path::new("/sys/module"));
        PauseLoop::check(in_force.as_ref(), wanted)?;
        Ok(in_force)
    }

    /// What was found, for people.
    pub fn describe(found: Option<&PauseLoop>) -> String {
        match found {
            Some(found) => format!(
                "{}: pause-loop window {}, gap {}, grow {}, shrink {}",
                found.module, found.window, found.gap, found.grow, found.shrink
            ),
            None => "no pause-loop exits (neither kvm_amd nor kvm_intel)".into(),
        }
    }

    /// How the module of that name is to be loaded for this host; `None`: with its defaults.
    ///
    /// Parameters of arch/x86/kvm/svm/svm.c and vmx/vmx.c (Linux 7.2): grow 2 and shrink 0 are their defaults; 1 and 1 leave the
    /// window alone.
    ///
    /// # Panics
    /// For a module that is neither `kvm_amd` nor `kvm_intel`.
    pub fn module_parameters(module: &str, host: &Host) -> Option<String> {
        let mut known = MODULES.iter();
        let names = known
            .find(|names| names.module == module)
            .expect("KVM has two modules on x86");
        let mut words = Vec::new();
        if let Some(window) = host.ple_window {
            words.push(format!("{}={window}", names.window));
        }
        if let Some(gap) = host.ple_gap {
            words.push(format!("{}={gap}", names.gap));
        }
        if host.ple_window_fixed {
            words.push(format!(
                "{}={MOVE_NOTHING} {}={MOVE_NOTHING}",
                names.grow, names.shrink
            ));
        }
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// Whether the parameters in force are those that the scenario states; one that states none takes any.
    pub fn check(in_force: Option<&PauseLoop>, wanted: &Host) -> Result<(), Error> {
        let stated = wanted.ple_window.is_some() || wanted.ple_gap.is_some();
        if !stated && !wanted.ple_window_fixed {
            return Ok(());
        }
        let in_force = in_force.ok_or(Error::NoPauseLoop)?;
        let names = in_force.names();
        let (grow, shrink) = match wanted.ple_window_fixed {
            true => (Some(MOVE_NOTHING), Some(MOVE_NOTHING)),
            false => (Some(GROW_DEFAULT), Some(SHRINK_DEFAULT)),
        };
        for (parameter, wanted, found) in [
            (names.window, wanted.ple_window, in_force.window),
            (names.gap, wanted.ple_gap, in_force.gap),
            (names.grow, grow, in_force.grow),
            (names.shrink, shrink, in_force.shrink),
        ] {
            if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
                return Err(Error::PauseLoop {
                    module: in_force.module,
                    parameter,
                    wanted,
                    found,
                });
            }
        }
        Ok(())
    }

    fn names(&self) -> &'static Names {
        MODULES
            .iter()
            .find(|names| names.module == self.module)
            .expect("only in_force() makes one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use unspin_scenario::Scenario;

    fn scenario_host(window: Option<u32>, gap: Option<u32>, fixed: bool) -> Host {
        Host {
            cpus: None,
            ple_window: window,
            ple_gap: gap,
            ple_window_fixed: fixed,
        }
    }

    const AMD: PauseLoop = PauseLoop {
        module: "kvm_amd",
        window: 200,
        gap: 128,
        grow: 1,
        shrink: 1,
        window_max: 65535,
    };

    fn refused(in_force: &PauseLoop, wanted: &Host) -> String {
        PauseLoop::check(Some(in_force), wanted)
            .expect_err("they differ")
            .to_string()
    }

    #[test]
    fn a_scenario_that_states_nothing_takes_what_is_there() {
        let nothing = scenario_host(None, None, false);
        assert!(PauseLoop::check(Some(&AMD), &nothing).is_ok());
        assert!(PauseLoop::check(None, &nothing).is_ok());
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        assert!(PauseLoop::check(Some(&AMD), &scenario_host(Some(200), Some(128), true)).is_ok());
        let message = refused(&AMD, &scenario_host(Some(3000), None, true));
        assert!(message.contains("pause_filter_count = 3000"), "{message}");
        assert!(message.contains("kvm_amd runs with 200"), "{message}");
        let message = refused(&AMD, &scenario_host(None, Some(64), true));
        assert!(message.contains("pause_filter_thresh = 64"), "{message}");
        let message = refused(&AMD, &scenario_host(Some(200), None, false));
        assert!(message.contains("pause_filter_count_grow = 2"), "{message}");
        let intel = PauseLoop {
            module: "kvm_intel",
            window: 4096,
            grow: 2,
            shrink: 0,
            ..AMD
        };
        assert!(PauseLoop::check(Some(&intel), &scenario_host(Some(4096), None, false)).is_ok());
        let message = refused(&intel, &scenario_host(Some(4096), None, true));
        assert!(message.contains("ple_window_grow = 1"), "{message}");
    }

    #[test]
    fn a_stated_window_without_the_module_is_refused() {
        let wanted = scenario_host(Some(200), None, true);
        assert!(matches!(
            PauseLoop::check(None, &wanted),
            Err(Error::NoPauseLoop)
        ));
    }

    /// Writes parameters of a module below a directory like /sys/module.
    fn set(modules: &Path, module: &str, values: &[(&str, &str)]) {
        let parameters = modules.join(module).join("parameters");
        fs::create_dir_all(&parameters).expect("it can be made");
        for (name, value) in values {
            fs::write(parameters.join(name), value).expect("it can be written");
        }
    }

    #[test]
    fn parameters_are_read_as_sysfs_shows_them() {
        let modules = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(PauseLoop::in_force(modules.path()), None);
        // A kernel without one of the parameters: nothing is claimed.
        set(
            modules.path(),
            "kvm_amd",
            &[("pause_filter_count", "200\n")],
        );
        assert_eq!(PauseLoop::in_force(modules.path()), None);
        set(
            modules.path(),
            "kvm_amd",
            &[
                ("pause_filter_thresh", "128\n"),
                ("pause_filter_count_grow", "1\n"),
                ("pause_filter_count_shrink", "1\n"),
                ("pause_filter_count_max", "65535\n"),
            ],
        );
        assert_eq!(PauseLoop::in_force(modules.path()), Some(AMD));
    }

    fn host_of(text: &str) -> Host {
        let text = format!(
            "iterations = 1\n[host]\n{text}\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\nhold = \"1us\"\n"
        );
        Scenario::parse(&text, "s").expect("valid").host
    }

    #[test]
    fn the_window_of_the_scenario_is_the_modules() {
        let host = host_of("ple_window = 200\nple_gap = 64\nple_window_fixed = true");
        for (module, parameters) in [
            (
                "kvm_amd",
                "pause_filter_count=200 pause_filter_thresh=64 pause_filter_count_grow=1 pause_filter_count_shrink=1",
            ),
            (
                "kvm_intel",
                "ple_window=200 ple_gap=64 ple_window_grow=1 ple_window_shrink=1",
            ),
        ] {
            assert_eq!(PauseLoop::module_parameters(module, &host_of("")), None);
            let found = PauseLoop::module_parameters(module, &host);
            assert_eq!(found.as_deref(), Some(parameters));
        }
    }
}
