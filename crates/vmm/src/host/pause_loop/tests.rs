// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use std::fs;

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
