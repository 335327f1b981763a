// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Intel machine keeps the same promises.

use libtest_mimic::Failed;
use unspin_testbed::{Options, Qemu, Vendor};

use crate::{options, ran, refused, works};

fn intel() -> Result<Options, Failed> {
    let mut options = options()?;
    options.vendor = Vendor::Intel;
    options.qemu = Qemu::Unspin;
    Ok(options)
}

pub fn intel_files_and_output_come_back_whole() -> Result<(), Failed> {
    works::come_back(intel()?)
}

pub fn intel_runs_are_the_same_and_kvm_is_there() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut options = intel()?;
    options
        .module_parameters
        .insert("kvm_intel".into(), "ple_window=123 ple_gap=45".into());
    options.seed = 42;
    let mut once = |name: &str| -> Result<_, Failed> {
        options.bring_back = Some(folder.path().join(name));
        let ran = ran(&options, &["wobble-on-kvm"])?;
        let file = std::fs::read(folder.path().join(name).join("log"))?;
        let times = (ran.outcome.boot_ns, ran.outcome.command_start_ns);
        Ok((ran.outcome.console, ran.stdout, file, times))
    };
    let (first, second) = (once("first")?, once("second")?);
    let said = String::from_utf8_lossy(&first.1);
    assert!(
        said.starts_with("123\n45\n/dev/kvm answers with version 12\n"),
        "{said}"
    );
    assert_eq!(said, String::from_utf8_lossy(&second.1), "standard output");
    assert!(first == second, "console, file or times differ");
    options.seed = 43;
    options.bring_back = None;
    assert_ne!(ran(&options, &["wobble-on-kvm"])?.stdout, first.1);
    Ok(())
}

pub fn an_intel_panic_is_seen() -> Result<(), Failed> {
    let options = intel()?;
    // Its output has begun, so it is not tried again.
    let (error, stdout, stderr) = refused(&options, &["speak-and-panic"])?;
    let message = error.to_string();
    assert!(
        message.contains("panicked or reset (sysrq triggered crash), in attempt 1 of 2"),
        "{message}"
    );
    assert!(stderr.contains("Kernel panic - not syncing"), "{stderr}");
    assert_eq!(stdout, b"spoken\n");
    Ok(())
}
