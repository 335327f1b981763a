// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin doctor`: what this machine can do, line by line, and how to get what is missing; or whether our BPF programs fit a
//! kernel that does not run.

use std::path::{Path, PathBuf};

use clap::Args;
use unspin_experiment::doctor;
use unspin_report::Table;

use crate::terminal::{failure::Failure, options::Output, output};

/// `unspin doctor`
#[derive(Args, Debug)]
pub struct DoctorArguments {
    /// Instead of this machine: whether every BPF program of ours finds what it needs in that kernel, without booting it.
    /// A folder with `vmlinuz` and `modules/`, as set-up's cache has them; what is packed is unpacked beside it.
    #[arg(long, value_name = "FOLDER")]
    pub kernel: Option<PathBuf>,
    /// Instead of this machine: which commands will work with a kernel that is installed here, as in 6.12.48+deb13-amd64, when it
    /// runs. What an upgrade of the kernel asks.
    #[arg(long, value_name = "RELEASE", conflicts_with = "kernel")]
    pub release: Option<String>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Prints every check. Something missing is a finding, not a failure: the exit status is 0 when all were made.
pub fn run(arguments: &DoctorArguments) -> Result<(), Failure> {
    if let Some(folder) = &arguments.kernel {
        return kernel(folder, arguments.output);
    }
    if let Some(release) = &arguments.release {
        return installed(Path::new("/"), release, arguments.output);
    }
    let checks = doctor::checks();
    let mut document = output::document("doctor");
    // Advice is long: below the table, one line for each check that has some.
    for check in &checks {
        if let Some(advice) = &check.advice {
            document.note(format!("{}: {advice}", check.check));
        }
    }
    document.table(Table::of("", checks));
    output::print(&document, arguments.output)?;
    Ok(())
}

/// Prints a row for each program and KVM module. What a kernel lacks is a finding, not a failure: the exit status is 0.
fn kernel(folder: &Path, output: Output) -> Result<(), Failure> {
    let fit = doctor::fit(folder)?;
    let mut document = output::document("doctor");
    document.table(Table::of("", fit.programs));
    if !fit.has_kvm {
        document.note(format!(
            "{} has no module of KVM: what is said to lack may be in one",
            folder.display()
        ));
    }
    output::print(&document, output)?;
    Ok(())
}

/// Prints a row for each command that loads programs. What a kernel lacks is a finding, not a failure: the exit status is 0.
fn installed(root: &Path, release: &str, output: Output) -> Result<(), Failure> {
    let fit = doctor::installed(root, release)?;
    let mut document = output::document("doctor");
    document.table(Table::of(
        format!("Linux {release}"),
        doctor::commands(&fit.programs),
    ));
    if !fit.has_kvm {
        document.note(
            "It has no module of KVM that could be read: what is said to lack may be in one.",
        );
    }
    output::print(&document, output)?;
    Ok(())
}
